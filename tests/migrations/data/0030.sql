-- A dataset with a description and a label.
UPDATE datasets SET description = 'All orders.' WHERE id = '22222222-2222-7222-8222-222222222222';
INSERT INTO dataset_labels (tenant_id, dataset_id, key, value)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'team', 'ops');
