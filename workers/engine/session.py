"""The Spark session of a worker process: started when first needed, then kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

# A JVM that was out of memory once is not to be relied on.
_SMALL_COMMIT_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m -XX:+ExitOnOutOfMemoryError"


def start_session(master: str, scratch: Path, *, driver_memory: str, name: str = "headwater") -> SparkSession:
    """A session for many short jobs. `scratch` is a local folder for Spark's own files.

    On a local master the JVM only schedules (rows go through Python tasks as Arrow), so it gets a small heap, the
    serial collector and the first compiler tier: it starts faster and leaves the cores to the tasks.
    """
    # Python workers use this interpreter and one thread each: Spark's tasks are the parallelism.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.update(OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1", ARROW_IO_THREADS="1")
    scratch.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedJobs": 50,
        "spark.ui.retainedStages": 50,
        "spark.ui.retainedTasks": 500,
        "spark.sql.ui.retainedExecutions": 50,
        "spark.scheduler.mode": "FAIR",
        "spark.speculation": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        "spark.driver.memory": driver_memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        # Text in the SQL of a view is never substituted, even if it looks like the name of a setting.
        "spark.sql.variable.substitute": "false",
        # The planner does not know the sizes of inputs, so only the sizes of shuffled data choose a broadcast.
        "spark.sql.autoBroadcastJoinThreshold": -1,
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB",
        "spark.log.level": "WARN",
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings["spark.driver.extraJavaOptions"] = _SMALL_COMMIT_JVM
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    return session
