-- An entry of the audit about a page of the console.
INSERT INTO audit (tenant_id, id, operation, method, route, resources, members, via, outcome, status)
VALUES ('11111111-1111-7111-8111-111111111111', '55555555-5555-7555-8555-555555555552', 'list_datasets', 'GET', '/datasets', '{}', '{}', 'console', 'allowed', 200);
