-- A webhook of the alerts of all datasets, an event that it has sent, and a worker that cannot start a process.
INSERT INTO webhooks (tenant_id, id, definition, secret, state)
VALUES ('11111111-1111-7111-8111-111111111111', '52525252-5252-7252-8252-525252525252',
        '{"url": "https://example.org", "events": "alerts"}', 'whsec_AAAA', 'active');
INSERT INTO alert_followers (tenant_id, webhook_id, position)
VALUES ('11111111-1111-7111-8111-111111111111', '52525252-5252-7252-8252-525252525252', 1);
INSERT INTO alert_feeds (tenant_id, next_event, states)
VALUES ('11111111-1111-7111-8111-111111111111', 1, '{"dataset-late 22222222-2222-7222-8222-222222222222":
        {"since": "2026-11-29T10:00:00Z", "dataset_id": "22222222-2222-7222-8222-222222222222", "dataset": "orders"}}');
INSERT INTO alert_events (tenant_id, number, dataset_id, event)
VALUES ('11111111-1111-7111-8111-111111111111', 0, '22222222-2222-7222-8222-222222222222',
        '{"id": "52525252-5252-7252-8252-525252525253", "alert": "dataset-late", "severity": "warning",
          "state": "firing", "labels": {"dataset": "orders"}, "summary": "", "detail": "", "action": "", "runbook": "",
          "fired_at": "2026-11-29T10:00:00Z", "resolved_at": null}');
INSERT INTO workers (id, kind, host, pid, version, faults)
VALUES ('worker-52', 'worker', 'host', 52, '0.1.0', '{"derived": "No module named ''pandas''"}');
