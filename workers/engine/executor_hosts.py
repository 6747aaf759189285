"""The hosts of a cluster's executors, and tasks that prefer some of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from pyspark import SparkContext
from pyspark.core.rdd import RDD
from pyspark.serializers import BatchedSerializer, CPickleSerializer

from workers.engine.placement import Partition

# Spark itself knows at once that a host is gone, and then lets its tasks run anywhere.
_KNOWN_SECONDS: Final = 2.0


class ExecutorHosts:
    """The hosts with an executor, as Spark reports them, kept for a short time. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: tuple[str, ...] = ()
        self._until = 0.0

    def alive(self, context: SparkContext) -> tuple[str, ...]:
        """Their names or addresses, as Spark names them, sorted."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._hosts = self._listed(context)
                self._until = time.monotonic() + _KNOWN_SECONDS
            return self._hosts

    def _listed(self, context: SparkContext) -> tuple[str, ...]:
        spark = context._jsc.sc()
        # All that hold blocks, as host:port.
        holders = str(spark.getExecutorMemoryStatus().keys().mkString(",")).split(",")
        counts = Counter(each.rpartition(":")[0] for each in holders)
        # The driver is one of them. Its port is unknown: py4j cannot load the class that has it.
        counts[str(spark.conf().get("spark.driver.host"))] -= 1
        return tuple(sorted(host for host, count in counts.items() if count > 0))


def placed(
    context: SparkContext, task_messages: Sequence[bytes], partitions: Sequence[Partition]
) -> RDD[bytes]:
    """The tasks in these partitions, each of which prefers its host.

    PySpark's `parallelize` has no preferences. This is its format: a pickled list for each partition.
    """
    serializer = CPickleSerializer()
    jvm: Any = context._jvm
    hosts = {host: jvm.PythonUtils.toSeq([host] if host else []) for host in {p.host for p in partitions}}
    elements = [
        jvm.scala.Tuple2(serializer.dumps([task_messages[number] for number in each.tasks]), hosts[each.host])
        for each in partitions
    ]
    rdd = context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(elements), jvm.scala.reflect.ClassTag.AnyRef())
    return RDD(rdd.toJavaRDD(), context, BatchedSerializer(serializer))
