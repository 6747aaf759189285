-- The result of an analysis.
INSERT INTO service_results (tenant_id, dataset_id, service, version, result)
VALUES ('11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222', 'analysis', 1,
        '{"rows": 2, "changes": 2, "distinct": {"1": 2}}');
