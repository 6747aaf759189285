"""The service behind the REST API: what the API and the worker share, in seven wings.

    main.py     the API process (`python -m app.main`)
    process/    what runs: the application, routes, services, openapi, doctor, backup
    features/   one folder each: writes reads views sources webhooks exports versions maintenance ...
    core/       a dataset's life: catalog jobs timeline changes consumers
    http/       what all handlers share
    access/     who may do what: tenants oidc audit
    infra/      what the service stands on: db files kafka outbound runtime settings logs
    kernel/     what a table, a commit and a change are: pure values and rules

A wing imports only wings below it in this list. A room is a package or module directly below a wing. The contracts
"Imports between wings point down" and "Imports between the rooms of ... point down" in pyproject.toml list all rooms in
their order; docs/ARCHITECTURE.md has a line for each.
"""
