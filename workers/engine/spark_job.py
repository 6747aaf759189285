"""One job of Spark: its tasks run, and their results come back as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.core.rdd import RDD


def results_of(tasks: RDD[bytes], run: Callable[[int, Iterable[bytes]], Iterator[bytes]]) -> list[bytes]:
    """What `run` makes of each partition of the tasks, given its number and its tasks, in their order.

    For each `RDD.collect` the JVM inflates and parses the classes RDD and SparkContext, to check functions of its own.
    `collectAsync` has one such function, in a small class, which takes a third off the processor time of a job of two
    small tasks. Results come by Py4J, so they are to be small.
    """
    # `mapPartitions` would pickle a function around `run` by its code.
    made: Any = tasks.mapPartitionsWithIndex(run)
    # The results are bytes already, so PySpark does not pickle them.
    made._bypass_serializer = True
    found = made._jrdd.collectAsync().get()
    return [found.get(number) for number in range(found.size())]
