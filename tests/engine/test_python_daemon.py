"""The process from which Spark forks its Python processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import psutil
import pytest
from pyspark.serializers import read_int

from tests.support.process import spark_tasks
from workers.engine.spark_engine import SparkEngine
from workers.engine.spark_settings import ONE_THREAD

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


@pytest.fixture
def short_folder() -> Iterator[str]:
    """The path of a socket has at most 107 bytes, so it has no room for the name of the test."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def test_closed_connection_of_an_idle_process_is_no_error(short_folder: str) -> None:
    """Spark closes that of a process without tasks after a minute."""
    command = [sys.executable, "-m", "workers.engine.python_daemon", "pyspark.worker"]
    variables = {
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": short_folder,
        "SPARK_REUSE_WORKER": "1",
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=os.environ | ONE_THREAD | variables, **pipes) as daemon:
        assert daemon.stdout is not None
        path = daemon.stdout.read(read_int(daemon.stdout))
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            process = psutil.Process(read_int(connection.makefile("rb", 4)))
        process.wait(30)
        # The end of its standard input ends the daemon.
        _, errors = daemon.communicate(timeout=30)
    assert errors == b""
