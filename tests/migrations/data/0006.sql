INSERT INTO idempotency_keys (tenant_id, scope, key, request_hash, status, headers, body, expires_at)
VALUES ('11111111-1111-7111-8111-111111111111', '/datasets', 'old-key', 'hash-of-the-request', 201,
        '{"Location": "/datasets/22222222-2222-7222-8222-222222222222", "Content-Type": "application/json"}',
        '{"name": "orders"}', '9999-01-01T00:00:00Z');
