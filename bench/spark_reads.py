"""A whole table read with Spark through the data source, beside Spark's own reader on the same rows in Parquet."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx2
import numpy as np
from pyspark.sql import DataFrame, SparkSession

from app.infra.runtime.java import java_home
from bench.options import parser
from bench.report import publish
from bench.service import running_service
from bench.table import Table
from headwater_client import Headwater
from headwater_client.spark import register

_TWO: Final = ("ts", "fare")
_PARQUET: Final = "Parquet, Spark's reader"
_OF_TWO: Final = ", two columns"


def consumed(rows: DataFrame) -> None:
    """Reads all columns of all rows, and keeps nothing."""
    rows.write.format("noop").mode("overwrite").save()


def fastest(run: Callable[[], None], runs: int) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def measured(
    spark: SparkSession, options: dict[str, str], direct: Path, runs: int, update: Callable[[], None]
) -> dict[str, float]:
    """Seconds by the way to read. `update` changes a hundredth of the rows."""

    def load(**more: str) -> DataFrame:
        return spark.read.format("headwater").options(**options, **more).load("trips")

    loaded = load()
    changes = load(query="changes")
    consumed(loaded)
    seconds = {
        _PARQUET: fastest(lambda: consumed(spark.read.parquet(str(direct))), runs),
        "data source": fastest(lambda: consumed(load()), runs),
        "data source, further queries": fastest(partial(consumed, loaded), runs),
        f"{_PARQUET}{_OF_TWO}": fastest(
            lambda: consumed(spark.read.parquet(str(direct)).select(*_TWO)), runs
        ),
        f"data source{_OF_TWO}": fastest(lambda: consumed(load(columns=",".join(_TWO))), runs),
        # A filter is evaluated by a read job.
        "data source, by a read job": fastest(lambda: consumed(load(where="TRUE")), runs),
        "data source, changes": fastest(partial(consumed, changes), runs),
    }
    update()
    seconds["data source, every file with deleted rows"] = fastest(lambda: consumed(load()), runs)
    return seconds


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=2_000_000, help="rows of the table")
    options.add_argument("--buckets", type=int, default=4, help="buckets of the dataset")
    options.add_argument("--runs", type=int, default=3, help="runs of each read, of which the fastest counts")
    chosen = options.parse_args()
    with (
        running_service(chosen.scratch) as service,
        service.client() as client,
        TemporaryDirectory(dir=chosen.scratch) as folder,
    ):
        os.environ |= {
            "JAVA_HOME": str(java_home(Path(folder))),
            # The Python processes of Spark need the client, too.
            "PYSPARK_PYTHON": sys.executable,
            "NO_PROXY": "*",
            "no_proxy": "*",
        }
        table = Table.create(service, client, "trips", buckets=chosen.buckets, table_type="merge_on_read")
        table.write("bulk_insert", np.arange(chosen.rows), ts=0)
        direct = Path(folder) / "direct"
        with Headwater(service.url, service.api_key, transport=httpx2.HTTPTransport()) as headwater:
            headwater.read_to_files("trips", direct)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        register(spark)
        connection = {"url": service.url, "api_key": service.api_key}

        def update() -> None:
            table.write("upsert", np.arange(0, chosen.rows, 100), ts=1)

        seconds = measured(spark, connection, direct, chosen.runs, update)
        spark.stop()

    def base(name: str) -> float:
        """Seconds of Spark's own reader for the same columns."""
        return seconds[f"{_PARQUET}{_OF_TWO}" if name.endswith(_OF_TWO) else _PARQUET]

    figures: list[dict[str, Any]] = [
        {
            "read": name,
            "s": round(each, 2),
            "rows/s": round(chosen.rows / each),
            "share of Parquet's rate": round(base(name) / each, 2),
        }
        for name, each in seconds.items()
    ]
    publish("spark-reads", {"buckets": chosen.buckets, "rows": chosen.rows}, figures)


if __name__ == "__main__":
    main()
