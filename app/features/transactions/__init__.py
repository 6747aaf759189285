"""Transactions: writes to several datasets that become visible together, or not at all.

Each write is checked and stored as one by itself; the jobs of all are then accepted in one database transaction. They
are claimed together, once they are next in all their datasets, and published in one commit of the timeline: a version
of each dataset. If one fails, all do. An Idempotency-Key belongs to the whole transaction.

- service.py: accept; values.py: a transaction, whose state is that of its jobs
- repository.py: transactions and their keys in Postgres
- handlers.py, schemas.py: the resources `/transactions`

    POST /transactions
    {"writes": [{"dataset": "orders", "operation": "upsert", "source": {"kind": "rows", "rows": [{"id": 1}]}},
                {"dataset": "payments", "operation": "insert", "source": {"kind": "rows", "rows": [{"id": 9}]}}]}
"""
