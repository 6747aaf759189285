"""A driver of its own process that copies the changes of a dataset to another one as a stream, until it is killed.

`python -m tests.support.spark_driver URL KEY FROM TO CHECKPOINT SCRATCH`
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from app.infra.runtime.java import java_home
from headwater_client.spark import register
from workers.engine.session import start_session
from workers.engine.spark_settings import session_settings

CHANGES_PER_BATCH = 10


def main(url: str, api_key: str, read: str, written: str, checkpoint: str, scratch: str) -> None:
    """Runs until the query ends, which it does not by itself."""
    os.environ["JAVA_HOME"] = str(java_home(Path(scratch)))
    settings = session_settings("local[1]", Path(scratch), driver_memory="512m")
    spark = start_session(settings, Path(scratch))
    register(spark)
    options = {"url": url, "api_key": api_key}
    changes = spark.readStream.format("headwater").options(
        query="changes", max_changes_per_trigger=CHANGES_PER_BATCH, **options
    )
    rows = changes.load(read).selectExpr("offset AS position", "op", "id", "note")
    copied = rows.writeStream.format("headwater").options(path=written, **options)
    copied.option("checkpointLocation", checkpoint).trigger(
        processingTime="100 milliseconds"
    ).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
