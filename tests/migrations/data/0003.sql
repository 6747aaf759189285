-- What came with 0003: a transaction, a batch of a stream, records in quarantine, a marked file.
INSERT INTO transactions (tenant_id, id, idempotency_key, request_hash)
VALUES ('11111111-1111-7111-8111-111111111111', '55555555-5555-7555-8555-555555555555', 'old-transaction', 'hash');
INSERT INTO writer_batches (tenant_id, dataset_id, writer_id, batch_id, job_id)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'old-writer', 7,
        '44444444-4444-7444-8444-444444444441');
INSERT INTO quarantine_files (tenant_id, dataset_id, path, job_id, row_count, size_bytes, checksum)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'quarantine/1.parquet',
        '44444444-4444-7444-8444-444444444441', 1, 10, 'xxh3:89ab');
INSERT INTO quarantine_redrives (tenant_id, dataset_id, path, record, job_id)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'quarantine/1.parquet', 0,
        '44444444-4444-7444-8444-444444444442');
UPDATE files SET written_version = 1, first_offset = 0, vector_path = 'deletes/1.roaring', deletion_vector =
    '{"path": "deletes/1.roaring", "offset": 0, "size_bytes": 8, "checksum": "xxh3:cdef", "cardinality": 1}';
