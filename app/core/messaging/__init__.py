"""Wake-ups through Redis. They carry ids only; a lost one costs latency, because every receiver also polls Postgres.

    outbox_sender    what the relay (`app.core.jobs.service.relay`) calls for each message of the outbox
    work_queue       to workers, as Celery messages: a dataset has writes, tasks or followers that are due
    announcements    to API processes, by publish and subscribe: a dataset has new changes, or a job has ended
    redis_limits     of requests, counted by all API processes together

A message is committed to the outbox in the transaction that it reports, and is sent after the commit, at least once.
"""
