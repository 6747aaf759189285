-- What came with 0004: a task that has ended, and some of what follows a feed.
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
