"""One job of Spark: its tasks run, and their results come back as bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.core.rdd import RDD
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer
from pyspark.util import _load_from_socket

# The last line of the traceback of a Python process, which Spark passes on as a text.
_IMPORT: Final = re.compile(r"^(?:ModuleNotFound|Import)Error: (.{1,500})$", re.MULTILINE)


def results_of(tasks: RDD[bytes], run: Callable[[int, Iterable[bytes]], Iterator[bytes]]) -> list[bytes]:
    """What `run` makes of each partition of the tasks, given its number and its tasks, in their order.

    For each `RDD.collect` the JVM inflates and parses the classes RDD and SparkContext, to check functions of its own.
    `collectAsync` has one such function, in a small class, which takes a quarter off the processor time of a job of two
    small tasks.
    """
    # `mapPartitions` would pickle a function around `run` by its code.
    rdd: Any = tasks.mapPartitionsWithIndex(run)
    # The results are bytes already, so PySpark does not pickle them.
    rdd._bypass_serializer = True
    java_array = rdd._jrdd.collectAsync().get()
    jvm: Any = rdd.ctx._jvm
    # Py4J itself writes results of more than 8 KiB in parts, and TCP holds the last one back for 40 ms.
    socket_info = jvm.PythonRDD.serveIterator(jvm.PythonUtils.toSeq(java_array).iterator(), "results")
    with _load_from_socket(socket_info, NoOpSerializer()) as results:
        return list(results)


def missing_module(error: Exception) -> ImportError | None:
    """The error of imports of a task, if Spark reports one; None for any other exception.

    Tasks run no Python of users, and errors of SQL are converted before.
    """
    if not isinstance(error, Py4JJavaError | PySparkException):
        return None
    match = _IMPORT.search(str(error))
    return None if match is None else ImportError(match[1])
