"""Spark: many small Python tasks in one warm session. Tasks read and write storage, and never connect to Postgres.

    spark_engine      `SparkEngine`: what use cases call; it runs tasks of all kinds, by what each states of itself
    tasks             every kind of task as a value, packed with msgpack, and one function that runs them all
    task_setup        what a task runs with in a process of Spark, and how it reports its error
    session           the Spark session of the process
    task_files        what a task on one file group reads and writes
    decode            raw input to staged rows
    merge             one file group brought up to date, in one of four ways
    read              parts of exports and of read jobs
    derive            the SQL of views
    hive_metastore    a Hive metastore, through the client in Spark's JVM

Spark distributes task values (`parallelize(tasks).mapPartitions(…)`) and collects result values. Rows pass neither the
driver nor the JVM, except those of views. A test runs a task in its own process, without Spark:

    result = run_task(resources, task)    # a MergedBundle for a MergeBundle
"""
