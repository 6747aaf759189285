-- Numbers of a dataset, and the stages of a job.
INSERT INTO dataset_hours (tenant_id, dataset_id, hour, writes, rows_written)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', '2026-11-29 10:00Z', 1, 2);
INSERT INTO dataset_samples
    (tenant_id, dataset_id, version, rows, deleted_rows, files, logs, size_bytes, write_gap_seconds)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 1, 2, 0, 1, 0, 10, 60);
INSERT INTO leaders (task, owner, lease_until) VALUES ('metrics', 'process', now());
UPDATE jobs SET timings = '{"accept": 2}', replans = 1 WHERE tenant_id = '11111111-1111-7111-8111-111111111111';
