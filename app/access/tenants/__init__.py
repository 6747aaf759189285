"""Tenants and credentials: who sends a request, and what the key or token permits.

    values        `Principal`: tenant, actor, scopes and grants of a request, with row filters and masks
    repository    `CredentialStore`: authenticates a key by its SHA-256 digest, admits verified tokens;
                  `AdministrationStore`: makes tenants and keys
    quotas        the limits of a tenant; `check_count` in repository/quotas is called where something is made
    rates, usage  limits of requests; what a tenant has used by day
    service       keeps the credentials that a process has cached current
    tables        `tenants`, `api_keys`, `token_subjects`
    bootstrap     `headwater init`: the newest schema, the roles, the first tenant and its operator key

`app.http.auth` calls `authenticate` for each request, with a cache of a few seconds. The tenant of the principal is the
only place that a tenant ever comes from: it is the first argument of every use case, and the transaction's tenant.
"""
