"""The process from which Spark forks its Python processes."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil

from tests.support.process import spark_tasks
from workers.engine.session import ONE_THREAD
from workers.engine.spark_engine import SparkEngine

_THREADS = """
import pathlib
import workers.engine.python_daemon
print(*sorted((task / "comm").read_text().strip() for task in pathlib.Path("/proc/self/task").iterdir()))
"""


def test_daemon_has_no_threads_that_its_children_would_miss() -> None:
    command = [sys.executable, "-c", _THREADS]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | ONE_THREAD)
    others = [name for name in ran.stdout.split() if name != "jemalloc_bg_thd"]
    assert len(others) == 1, others


def test_python_processes_of_tasks_are_forked_with_what_tasks_need(engine: SparkEngine) -> None:
    assert engine.jvm() is not None
    processes = spark_tasks(os.getpid())
    assert processes
    for process in processes:
        shared = process.memory_full_info()
        # Most of what a process has loaded is that of the daemon.
        assert shared.uss < 0.8 * shared.rss
        assert psutil.Process(process.ppid()).cmdline()[-2:] == [
            "workers.engine.python_daemon",
            "pyspark.worker",
        ]
