"""Which datasets a worker process works on now. Messages and polls carry ids only; claims are made in Postgres.

    celery_worker    receives wake-ups from Redis and passes them to the runner of their kind
    poller           finds datasets with waiting work in Postgres, in case a wake-up was lost
    fair_queue       whose dataset is next: fair between tenants, in turn within a tenant
    runner           threads that take the next dataset from a fair queue and do one unit of its work

`derived_process` starts and watches the processes beside a worker, in which the SQL of users runs.

There is a runner each for writes, for the SQL of users, tasks, followers and maintenance. A wake-up for a dataset
that a runner works on is recorded once, and makes it run again afterwards.
"""
