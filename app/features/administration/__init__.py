"""Tenants and API keys over HTTP: operators administer tenants, and tenants their own keys.

- service.py: tenants and keys; who may make which key
- handlers/tenants.py: for operators (scope `operate`)
- handlers/keys.py: the keys of the own tenant (scope `manage`), and, for operators, those of any tenant
- handlers/identity.py: `/me`, what a key is and may do
- handlers/usage.py: quotas, and what tenants have used by day
- schemas.py: the JSON of tenants, keys and the identity

The tables and repositories are those of `app.access.tenants`. Changes use a login of their own
(HEADWATER_ADMIN_DATABASE_URL), so that a process that only serves data cannot change who may read it.

    POST /tenants/acme/keys
    {"name": "loader", "scopes": ["write"], "grants": [{"datasets": "orders_*"}]}
"""
