-- A batch of a stream with the digest of its rows.
INSERT INTO writer_batches (tenant_id, dataset_id, writer_id, batch_id, job_id, rows_digest)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'old-writer', 8,
        '44444444-4444-7444-8444-444444444442', 'digest');
