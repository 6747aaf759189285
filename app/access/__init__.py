"""Who may do what: the tenant of a request, its credential, and what is recorded of it.

    tenants    tenants, API keys, quotas and usage; what a credential may do, and with which datasets
    oidc       tokens of OpenID Connect issuers, and the keys of their issuers
    audit      who requested what, when, from where, and the result
    errors     errors of requests to any resource: no credential, no right, no such resource, another revision

The tenant of the principal is the first argument of every call below the handlers, and never comes from a request.
"""
