"""Trips with Spark: insert, update, snapshot, incremental, point in time, delete, insert_overwrite, and a stream.

HEADWATER_URL=http://127.0.0.1:8080 HEADWATER_API_KEY=$(cat .headwater/operator.key) \\
    .venv/bin/python examples/spark_quickstart.py
"""

import os
import sys
import tempfile
import time

from pyspark.sql import DataFrame, SparkSession

from headwater_client.spark import register

# Spark's own Python processes need the package, too.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = session.config("spark.sql.shuffle.partitions", 2).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
register(spark)

CONNECTION = {"url": os.environ["HEADWATER_URL"], "api_key": os.environ["HEADWATER_API_KEY"]}
TRIPS = f"trips_{time.time_ns()}"
CITIES = ("chennai", "san_francisco", "sao_paulo")
SCHEMA = "ts long, uuid string, rider string, driver string, fare double, city string"


def trips(numbers: range, ts: int) -> DataFrame:
    """A trip for each number, at a time. The same number is the same trip."""
    rows = [
        (ts, f"trip-{n}", f"rider-{n % 5}", f"driver-{ts}", 10.0 + (7 * n + ts) % 90, CITIES[n % 3])
        for n in numbers
    ]
    return spark.createDataFrame(rows, SCHEMA)


def write(rows: DataFrame, operation: str, **options: str) -> None:
    """Commits a data frame."""
    writer = rows.write.format("headwater").options(**CONNECTION, **options)
    writer.option("operation", operation).mode("append").save(TRIPS)


def read(path: str = TRIPS, **options: str) -> DataFrame:
    """Loads the trips."""
    return spark.read.format("headwater").options(**CONNECTION, **options).load(path)


def show(title: str, rows: DataFrame) -> None:
    """Prints rows."""
    print(f"{title}: {[tuple(row) for row in rows.collect()]}")


# Insert. The first write registers the dataset, with the columns of its rows.
table = {"create": "true", "record_key": "uuid,city", "ordering_field": "ts", "partition_by": "city"}
write(trips(range(9), ts=1), "insert", **table)
read().createOrReplaceTempView("first")
show("trips", spark.sql("SELECT city, COUNT(*) FROM first GROUP BY city ORDER BY city"))

# Update, and two new trips.
write(trips(range(7, 11), ts=2), "upsert")
read().createOrReplaceTempView("trips")
show("updated", spark.sql("SELECT uuid, driver FROM trips WHERE ts = 2 ORDER BY LENGTH(uuid), uuid"))

# What changed since version 1, and the table as it was at version 1.
changed = read(query="incremental", begin="1", columns="uuid,fare,ts")
show("incremental", changed.where("fare > 0").selectExpr("COUNT(*)", "MIN(ts)"))
show("point in time", read(version="1").selectExpr("COUNT(*)", "MAX(ts)"))

# Delete two trips; rows with their keys suffice.
write(spark.sql("SELECT uuid, city, ts FROM trips WHERE uuid IN ('trip-0', 'trip-3')"), "delete")
show("after the delete", read().selectExpr("COUNT(*)"))

# Replace the partitions of the rows, here chennai.
write(trips(range(30, 31), ts=3), "insert_overwrite")
show("chennai", read(where="city = 'chennai'", columns="uuid").orderBy("uuid"))

# The changes, as a batch and as a stream.
changes = read(query="changes").groupBy("op").count().orderBy("op")
show("changes", changes)
with tempfile.TemporaryDirectory() as folder:
    stream = spark.readStream.format("headwater").options(**CONNECTION, query="changes").load(TRIPS)
    copied = stream.selectExpr("offset AS position", "op", "uuid", "fare").writeStream.format("headwater")
    copied = copied.options(**CONNECTION, path=f"{TRIPS}_changes", create="true", checkpointLocation=folder)
    copied.trigger(availableNow=True).start().awaitTermination()
show("streamed", read(f"{TRIPS}_changes").selectExpr("COUNT(*)"))
