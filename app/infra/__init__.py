"""What the service stands on: adapters of Postgres, storage and the network, and the settings of a process.

    db                 connections to Postgres, each transaction for one tenant
    files              Parquet and Arrow files on local disk or S3: read, written, merged, cached
    kafka              brokers, offsets and messages of topics, schema registries
    outbound           which addresses may be connected to for a user, and how: in time, or by processes with limits
    runtime            the embedded servers and their supervisor; no part of the API or the worker
    settings, logs     the settings and the log of a process
    sharing            what concurrent requests and tenants share: flights, slots, memory
    identifiers        new ids, which read the clock and random bits
    outages, errors    which exceptions are faults of the environment; errors of the storage and of the database

These rooms know the values of the kernel, and nothing of tenants, jobs or HTTP handlers.
"""
