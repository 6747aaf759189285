-- A share with one dataset, and a recipient of a part of it.
INSERT INTO shares (tenant_id, id, name, folded_name, deleted_rows)
VALUES ('11111111-1111-7111-8111-111111111111', '55555555-5555-7555-8555-555555555551', 'Sales', 'sales', 'rendered');
INSERT INTO shared_datasets (tenant_id, share_id, dataset_id, name, folded_name)
VALUES ('11111111-1111-7111-8111-111111111111', '55555555-5555-7555-8555-555555555551',
        '22222222-2222-7222-8222-222222222222', 'Orders', 'orders');
INSERT INTO recipients (tenant_id, id, share_id, name, grants)
VALUES ('11111111-1111-7111-8111-111111111111', '55555555-5555-7555-8555-555555555552',
        '55555555-5555-7555-8555-555555555551', 'acme',
        '[{"dataset_id": "22222222-2222-7222-8222-222222222222", "mask": ["id"]}]');
INSERT INTO share_tokens (tenant_id, recipient_id, digest)
VALUES ('11111111-1111-7111-8111-111111111111', '55555555-5555-7555-8555-555555555552',
        decode(repeat('ab', 32), 'hex'));
