"""Spark with Iceberg's jars, whose paths are the arguments. Option `planning`: `client` or `server`."""

from __future__ import annotations

import sys
import time
from functools import cache

import pyarrow as pa
from pyspark.sql import SparkSession
from reader_process import Request, condition, quoted, selection, serve

_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


@cache
def session() -> SparkSession:
    """The one session."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(sys.argv[1:]))
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.extensions", _EXTENSIONS)
    )
    return builder.getOrCreate()


@cache
def _catalogue(uri: str, token: str, warehouse: str, planning: str) -> str:
    """The name of a catalogue, whose settings Spark reads when it is named first."""
    name = f"catalogue_{_catalogue.cache_info().currsize}"
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": uri,
        ".token": token,
        ".warehouse": warehouse,
        ".cache-enabled": "false",
        ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        ".header.X-Iceberg-Access-Delegation": "vended-credentials",
    } | ({".scan-planning-mode": planning} if planning else {})
    for key, value in settings.items():
        session().conf.set(f"spark.sql.catalog.{name}{key}", value)
    return name


def read(request: Request) -> pa.Table:
    """The rows of a table. Option `metadata`: columns of Iceberg's to read beside those of the table.

    `pause_seconds`: how long to wait between the plan and the read. `appends`: two versions; the rows that appends
    after the first up to the second have added.
    """
    options = request["options"]
    planning = options.get("planning", "")
    catalogue = _catalogue(request["uri"], request["token"], request["warehouse"], planning)
    version = "" if request["version"] is None else f" VERSION AS OF {request['version']}"
    table = f"{catalogue}.headwater.{quoted(request['table'], '`')}{version}"
    more = "".join(f", {name}" for name in options.get("metadata", ()))
    if "appends" in options:
        start, end = map(str, options["appends"])
        found = session().read.format("iceberg").option("start-snapshot-id", start)
        return found.option("end-snapshot-id", end).load(table).toArrow()
    query = f"SELECT {selection(request, '`')}{more} FROM {table}{condition(request)}"
    rows = session().sql(query)
    time.sleep(options.get("pause_seconds", 0))
    return rows.toArrow()


if __name__ == "__main__":
    serve(read)
