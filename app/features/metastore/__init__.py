"""Reports of datasets to a Hive metastore, so that engines which read Hive tables find their Parquet files.

A dataset names a Hive table in `services.metastore`. After each commit `service/metastore_reconciler` makes the Hive
table and its partitions those of the latest version: only the partitions that changed since the version that the
metastore reports last, or all of them in batches if that is unknown. It then notes the version in the table. A failed
report is retried later and delays nothing else. `report` has the values of a report; `values` the ports and the state
that is kept between runs. `service/reports` returns that state to users.

    GET /datasets/orders/metastore
"""
