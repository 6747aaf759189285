-- A commit of a write with metadata.
UPDATE instants SET metadata = '{"run": "nightly-6"}'
WHERE dataset_id = '22222222-2222-7222-8222-222222222222' AND version = 1;
UPDATE commits SET metadata = '[{"run": "nightly-6"}]', metadata_bytes = 22
WHERE dataset_id = '22222222-2222-7222-8222-222222222222' AND version = 1;
