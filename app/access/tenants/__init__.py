"""Tenants and credentials: who sends a request, and what the key or token permits.

    values        `Principal`: tenant, actor and scopes of a request
    repository    `CredentialStore`: authenticates a key by its SHA-256 digest, admits verified tokens;
                  `AdministrationStore`: makes tenants and keys
    tables        `tenants`, `api_keys`, `token_subjects`
    bootstrap     `headwater init`: the newest schema, the roles, the first tenant and its operator key

`app.http.auth` calls `authenticate` for each request, with a cache of a few seconds. The tenant of the principal is the
only place that a tenant ever comes from: it is the first argument of every use case, and the transaction's tenant.
"""
