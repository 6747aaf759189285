"""Trips with Spark: insert, update, snapshot, incremental, point in time, delete, insert_overwrite, and a stream.

HEADWATER_URL=http://127.0.0.1:8080 HEADWATER_API_KEY=$(cat .headwater/operator.key) \\
    .venv/bin/python examples/spark_quickstart.py
"""

import os
import sys
import tempfile
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, to_timestamp

from clients.demo.trip_generator import TripGenerator
from headwater_client.spark import register

# Spark's own Python processes need the package, too.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = session.config("spark.sql.shuffle.partitions", 2).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
register(spark)

CONNECTION = {"url": os.environ["HEADWATER_URL"], "api_key": os.environ["HEADWATER_API_KEY"]}
TRIPS = f"trips_{time.time_ns()}"
SCHEMA = (
    "uuid string, city string, ts string, rider string, driver string, begin_lat double, begin_lon double, "
    "end_lat double, end_lon double, fare string"
)
# The same seed makes the same trips, as `headwater demo trips` does.
GENERATOR = TripGenerator(seed=1)


def frame(rows: list[dict[str, object]]) -> DataFrame:
    """Trips of the generator as a data frame."""
    trips = spark.createDataFrame(rows, SCHEMA)
    return trips.withColumn("ts", to_timestamp("ts")).withColumn("fare", col("fare").cast("decimal(10, 2)"))


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
write(frame(GENERATOR.inserts(20)), "insert", **table)
read().createOrReplaceTempView("first")
show("trips", spark.sql("SELECT city, COUNT(*) FROM first GROUP BY city ORDER BY city"))

# Update trips, which then have a later time, and insert further ones.
write(frame(GENERATOR.updates(5)), "upsert")
write(frame(GENERATOR.inserts(10)), "insert")
read().createOrReplaceTempView("trips")
show("snapshot", spark.sql("SELECT COUNT(*), COUNT(DISTINCT ts) FROM trips"))

# What changed after version 1, up to version 2 and up to now; and the table as it was at version 1.
updated = read(query="incremental", begin="1", end="2", columns="uuid,city,fare,ts")
show("incremental, versions 1 to 2", updated.selectExpr("COUNT(*)", "COUNT(DISTINCT ts)"))
changed = read(query="incremental", begin="1", columns="uuid,city,fare,ts")
show("incremental, from version 1", changed.selectExpr("COUNT(*)", "COUNT(DISTINCT ts)"))
show("point in time", read(version="1").selectExpr("COUNT(*)", "COUNT(DISTINCT ts)"))

# Delete two trips; rows with their keys suffice.
gone = [trip["uuid"] for trip in GENERATOR.deletes(2)]
write(read().where(col("uuid").isin(gone)).select("uuid", "city", "ts"), "delete")
show("after the delete", read().selectExpr("COUNT(*)"))

# Replace the partitions of the rows, here chennai.
write(frame(GENERATOR.replacements("chennai", 2)), "insert_overwrite")
show("chennai", read(where="city = 'chennai'", columns="uuid").selectExpr("COUNT(*)"))
show("cities", read().groupBy("city").count().orderBy("city"))

# The changes, as a batch and as a stream.
changes = read(query="changes").groupBy("op").count().orderBy("op")
show("changes", changes)
with tempfile.TemporaryDirectory() as folder:
    stream = spark.readStream.format("headwater").options(**CONNECTION, query="changes").load(TRIPS)
    copied = stream.selectExpr("offset AS position", "op", "uuid", "fare").writeStream.format("headwater")
    copied = copied.options(**CONNECTION, path=f"{TRIPS}_changes", create="true", checkpointLocation=folder)
    copied.trigger(availableNow=True).start().awaitTermination()
show("streamed", read(f"{TRIPS}_changes").selectExpr("COUNT(*)"))
