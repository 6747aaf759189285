"""The service behind the REST API, in seven wings. `workers`, beside this package, runs the jobs on Spark with them.

    main.py     the API process (`python -m app.main`)
    process/    what runs: application api features openapi readiness doctor backup
    features/   one folder each: writes reads views sources webhooks exports versions maintenance ...
    core/       a dataset's life: catalog jobs timeline changes consumers idempotency messaging ...
    http/       what all handlers share
    access/     who may do what: tenants oidc audit; the credential of a request is checked in http/
    infra/      what the service stands on: db files kafka outbound runtime sharing settings logs
    kernel/     what a table, a commit and a change are, pure: format (types, partitions, row limits), codecs (CSV,
                JSON, Avro ...), sql (conditions, queries of views), commit, changelog (the feed and its forms)

A wing imports only wings below it in this list. A room is a package or module directly below a wing; `http` is one
room. The contracts
"Imports between wings point down" and "Imports between the rooms of ... point down" in pyproject.toml list all rooms in
their order; docs/ARCHITECTURE.md has a line for each.
"""
