"""The process from which Spark forks its Python processes: it has loaded what tasks need.

A process that loads it by itself takes a second before its first task, on a core that others need, and has its own copy
of it in memory. `spark.python.daemon.module` names this module. What it imports must start no threads, except those of
jemalloc, which can be forked: another thread would be missing in the forked processes, with the locks it holds.
"""

from __future__ import annotations

import gc
import socket

import pyspark.daemon

import workers.engine.tasks  # noqa: F401

_serve = pyspark.daemon.worker


def serve(sock: socket.socket, authenticated: bool) -> int:
    """Runs tasks until Spark closes the connection; returns the exit code.

    Spark closes that of a process that was idle for a minute. PySpark would print the trace of this end as an error.
    """
    try:
        return _serve(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    pyspark.daemon.worker = serve
    # The collector of a forked process then leaves the pages of these objects shared.
    gc.freeze()
    pyspark.daemon.manager()
