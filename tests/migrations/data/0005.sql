-- What came with 0005: a table service that has made a version, names of versions, a reader, an archive, a result.
INSERT INTO named_versions (tenant_id, dataset_id, name, kind, version)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'before', 'savepoint', 1);
INSERT INTO read_leases (tenant_id, dataset_id, reader, version, lease_until)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'job-1', 1, now());
INSERT INTO timeline_archives (tenant_id, dataset_id, path, first_instant, last_instant, row_count, size_bytes, checksum)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'timeline/1.parquet',
        '1', '2', 2, 100, 'xxh3:0123');
INSERT INTO jobs (tenant_id, id, dataset_id, kind, lane, state, task, result, progress, rows, epoch, attempts, actor,
                  started_at, finished_at)
VALUES ('11111111-1111-7111-8111-111111111111', '44444444-4444-7444-8444-444444444445',
        '22222222-2222-7222-8222-222222222222', 'read', 'tasks', 'succeeded',
        '{"task": "read", "query": "snapshot", "version": 1, "format": "json", "disposition": "inline"}', '{"rows": 2}',
        '{"stage": "succeeded", "done": 0, "total": 0}',
        '{"inserted": 0, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 0}', 1, 1,
        '11111111-1111-7111-8111-111111111111', now(), now());
INSERT INTO read_files (tenant_id, dataset_id, path, job_id, number, name, row_count, size_bytes, checksum)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'reads/1.json',
        '44444444-4444-7444-8444-444444444445', 1, 'part-00001.json', 2, 100, 'xxh3:0123');
INSERT INTO table_keeping (tenant_id, dataset_id, memory)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222',
        '{"compaction": {"version": 1, "wake_at": null, "failures": 0, "memory": {}}}');
INSERT INTO partition_feeds (tenant_id, dataset_id, version, next_event)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 1, 1);
INSERT INTO partition_marks (tenant_id, dataset_id, path, changed_version, changed_at, done_version, done_at)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'day=2026-01-01', 1, now(), 1,
        now());
INSERT INTO partition_events (tenant_id, dataset_id, number, kind, partition, version, reason)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 0, 'done', 'day=2026-01-01', 1,
        'idle');
