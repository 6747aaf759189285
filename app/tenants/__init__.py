"""Tenants and API keys: who sends a request, and what the key permits.

    values        `Principal`: tenant, key and scopes of a request
    repository    `TenantStore`: makes tenants and keys, authenticates a key by its SHA-256 digest
    tables        `tenants`, `api_keys`
    bootstrap     `headwater init`: the newest schema, the roles, the first tenant and its operator key

`app.http.auth` calls `authenticate` for each request, with a cache of a few seconds. The tenant of the principal is the
only place that a tenant ever comes from: it is the first argument of every use case, and the transaction's tenant.
"""
