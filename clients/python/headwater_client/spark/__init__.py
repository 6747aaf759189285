"""The Spark data source `headwater`: batch and streaming, reads and writes.

    from headwater_client.spark import register

    register(spark)
    orders = spark.read.format("headwater").load("orders")
    changed.write.format("headwater").mode("append").option("operation", "upsert").save("orders")

`options` has every option. `data_source` is what Spark instantiates, `catalog_tables` what a CREATE TABLE in SQL needs.
`table_reader` reads tables, by scans or by read
jobs, `part_file` single columns of their files, `change_reader` and `stream_reader` read the feed, `writer` writes.
Needs PySpark 4.2 or later, and this package on the executors.
"""

from headwater_client.spark.data_source import HeadwaterDataSource, register
from headwater_client.spark.options import InvalidOption

__all__ = ["HeadwaterDataSource", "InvalidOption", "register"]
