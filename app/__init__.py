"""The service behind the REST API: the rooms that the API and the worker share.

A room is a package (or a module) of this one. The contract "Imports between rooms point down" in pyproject.toml lists
all rooms in their order; docs/ARCHITECTURE.md has a line for each. From the bottom:

    format, codecs, sql, commit, changelog       the table format: values and rules, without I/O
    files, db, outbound                          adapters: storage, Postgres, users' URLs
    tenants, http, catalog, jobs, messaging,     the core rooms
    timeline, changes, consumers
    writes, reads, views, exports, webhooks, …   a feature each, with handlers, schemas, service, repository, values
    platform, core, composition, services        composition, and `main`, the API process (`python -m app.main`)
    runtime                                      the embedded servers; no part of the API or the worker
"""
