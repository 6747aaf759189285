"""The worker process: `python -m workers.main`.

    main      settings, threads, shutdown: Celery, pollers, relay, reaper, retention around one Spark session
    jvm       the JVM of Spark where the supervisor starts it, so that it outlives this process
    wiring    the use cases of the worker, merged from the `compose` modules of the features
    jobs      which datasets this process works on now
    engine    the tasks that Spark runs

A wake-up or a poll names a dataset. A `Runner` calls a use case for it (writes, tasks, followers, maintenance), the use
case claims work in Postgres, has the engine run tasks, and publishes the result in Postgres.
"""
