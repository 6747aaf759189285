-- A process that reports its disk, and an alert that is active.
INSERT INTO workers (id, kind, host, pid, version, disk_free_bytes, disk_total_bytes)
VALUES ('api', 'api', 'host', 1, '0.1.0', 1, 2);
INSERT INTO alerts (name, phase, since, fired_at, detail) VALUES ('disk-low', 'firing', now(), now(), 'process=api: 0.05');
