-- A source that has read a file.
INSERT INTO sources (tenant_id, id, name, dataset_id, dataset_name, definition, secrets, state, position, rounds)
VALUES ('11111111-1111-7111-8111-111111111111', '99999999-9999-7999-8999-999999999999', 'in',
        '22222222-2222-7222-8222-222222222222', 'orders',
        '{"dataset": "orders", "kind": "files", "config": {"path": "file:///srv", "format": "csv"}, "mode": "once"}',
        '{}', 'active', '{"files": 1, "last": "a.csv"}', 1);
INSERT INTO source_items (tenant_id, source_id, name, fingerprint, checksum, size_bytes, round)
VALUES ('11111111-1111-7111-8111-111111111111', '99999999-9999-7999-8999-999999999999', 'a.csv', '1-1', 'c', 1, 1);
