-- A process that reports its memory.
INSERT INTO workers (id, kind, host, pid, version, resident_bytes) VALUES ('api-2', 'api', 'host', 2, '0.1.0', 3);
