-- The subject of a token.
INSERT INTO token_subjects (tenant_id, id, issuer, subject)
VALUES ('11111111-1111-7111-8111-111111111111', '66666666-6666-5666-8666-666666666666', 'https://issuer.example', 'ada');
