"""Idempotency keys of requests that create something and are not jobs.

A request with the header `Idempotency-Key` runs once. Its reply is stored with the key in the transaction that creates
the resource, so a retry gets the first reply, and no crash leaves one without the other. A key belongs to the tenant
and the path of the request, and expires a day later. Jobs keep the keys of their requests themselves (app/core/jobs).

- values.py: the request of a key, and its reply
- service.py: the use case of handlers
- repository.py: runs a request once, with its reply in one transaction; tables.py: the keys and replies
- sealing.py: encrypts replies that contain a secret
- providers.py: what handlers use: `return await idempotency.run(create)`

    POST /datasets
    Idempotency-Key: 5e1f3f9c
"""
