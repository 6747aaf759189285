-- What 0003.sql has, and of what came with 0004: a task that has ended, and one of each that follows a feed.
INSERT INTO tenants (tenant_id, name) VALUES ('11111111-1111-7111-8111-111111111111', 'acme');
INSERT INTO datasets (tenant_id, id, name, definition, deleted_at)
SELECT '11111111-1111-7111-8111-111111111111', id::uuid, 'orders', definition::json, deleted_at
FROM (VALUES
    ('22222222-2222-7222-8222-222222222222', NULL::timestamptz),
    ('22222222-2222-7222-8222-333333333333', now())
) AS rows (id, deleted_at),
(VALUES ('{"name": "orders", "schema": {"id": 1, "fields": [
    {"id": 1, "name": "id", "type": "int64", "nullable": false, "doc": null},
    {"id": 2, "name": "note", "type": "string", "nullable": true, "doc": "n\u0000ull"}]},
    "record_key": ["id"], "ordering_field": null, "event_time_field": null, "partition_by": [],
    "table_type": "copy_on_write", "bucket": {"mode": "fixed", "count": 4}, "merge_mode": "commit_time",
    "changelog": {"producer": "full"}}')) AS one (definition);
INSERT INTO heads (tenant_id, dataset_id, version, next_offset, committed_at)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 1, 2, '2026-01-02T03:04:05.678Z');
INSERT INTO schema_versions (tenant_id, dataset_id, schema_id, schema)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 1, '{"id": 1, "fields": []}');
INSERT INTO jobs (tenant_id, id, dataset_id, instant_id, kind, state, request, progress, rows,
                  committed_version, first_offset, last_offset, epoch, attempts, started_at, finished_at)
VALUES
    ('11111111-1111-7111-8111-111111111111', '44444444-4444-7444-8444-444444444441',
     '22222222-2222-7222-8222-222222222222', '20260102030405000000-aaaaaa', 'write', 'succeeded',
     '{"operation": "upsert", "staged": [], "raw": null}', '{"stage": "merge", "done": 1, "total": 1}',
     '{"inserted": 2, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 0}', 1, 0, 1, 1, 1, now(), now()),
    ('11111111-1111-7111-8111-111111111111', '44444444-4444-7444-8444-444444444442',
     '22222222-2222-7222-8222-222222222222', '20260102030405000000-bbbbbb', 'write', 'queued',
     '{"operation": "upsert", "staged": [], "raw": null}', '{"stage": "queued", "done": 0, "total": 0}',
     '{"inserted": 0, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 0}',
     NULL, NULL, NULL, 0, 0, NULL, NULL);
INSERT INTO idempotency (tenant_id, dataset_id, key, request_hash, job_id)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'old-key', 'hash',
        '44444444-4444-7444-8444-444444444442');
INSERT INTO instants (tenant_id, dataset_id, id, action, operation, state, job_id, version, completed_at, counts)
VALUES
    ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', '20260102030405000000-aaaaaa',
     'commit', 'upsert', 'completed', '44444444-4444-7444-8444-444444444441', 1, '2026-01-02T03:04:05.678Z',
     '{"inserted": 2, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 0}'),
    ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', '20260102030405000000-bbbbbb',
     'commit', 'upsert', 'requested', '44444444-4444-7444-8444-444444444442', NULL, NULL,
     '{"inserted": 0, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 0}');
INSERT INTO commits (tenant_id, dataset_id, version, action, instant_id, committed_at, first_offset, next_offset,
                     schema_id, files_added, files_removed, bytes_added, counts)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 1, 'commit',
        '20260102030405000000-aaaaaa', '2026-01-02T03:04:05.678Z', 0, 2, 1, 1, 0, 100,
        '{"inserted": 2, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 0}');
INSERT INTO files (tenant_id, dataset_id, path, file_group, partition_path, bucket, added_version, size_bytes,
                   row_count, checksum, schema_id, statistics)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'data/1.parquet',
        'bucket-00000', '', 0, 1, 100, 2, 'xxh3:0123', 1,
        '{"1": {"minimum": 1, "maximum": 2, "null_count": 0}, "2": {"minimum": "a\u0000b", "maximum": null, "null_count": 0}}');
INSERT INTO changelog_files (tenant_id, dataset_id, path, file_group, version, first_offset, row_count, size_bytes,
                             checksum, schema_id)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'changelog/1.parquet',
        'bucket-00000', 1, 0, 2, 50, 'xxh3:4567', 1);
INSERT INTO outbox (tenant_id, topic, dataset_id)
VALUES ('11111111-1111-7111-8111-111111111111', 'work', '22222222-2222-7222-8222-222222222222');
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
UPDATE changelog_files SET corrects_min = 0, corrects_max = 1;
INSERT INTO jobs (tenant_id, id, dataset_id, kind, lane, state, task, result, progress, rows, epoch, attempts,
                  started_at, finished_at)
VALUES ('11111111-1111-7111-8111-111111111111', '44444444-4444-7444-8444-444444444443',
        '22222222-2222-7222-8222-222222222222', 'export', 'tasks', 'succeeded',
        '{"task": "export", "export_id": "66666666-6666-7666-8666-666666666666", "number": 1}', '{"rows": 2}',
        '{"stage": "succeeded", "done": 0, "total": 0}',
        '{"inserted": 0, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 0}', 1, 1, now(), now());
INSERT INTO consumers (tenant_id, dataset_id, name, kind, position, max_lag_rows)
VALUES
    ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'reader', 'reader', 1, 100),
    ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222',
     'export:66666666-6666-7666-8666-666666666666', 'export', 2, NULL);
INSERT INTO exports (tenant_id, id, dataset_id, definition, state)
VALUES ('11111111-1111-7111-8111-111111111111', '66666666-6666-7666-8666-666666666666',
        '22222222-2222-7222-8222-222222222222', '{}', 'active');
INSERT INTO export_runs (tenant_id, export_id, number, since, until, job_id)
VALUES ('11111111-1111-7111-8111-111111111111', '66666666-6666-7666-8666-666666666666', 1, 0, 2,
        '44444444-4444-7444-8444-444444444443');
