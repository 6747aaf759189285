"""The Spark session of a worker process: started when first needed, then kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py4j.clientserver import ClientServer
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int
from pyspark.sql import SparkSession

from workers.engine.jvm import CONNECTION, start_jvm
from workers.engine.spark_settings import ONE_THREAD

_START_SECONDS_MAX = 120.0
_GATEWAY_PORT, _GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_CLASSES_OF_JOBS = {
    "PythonRDD": ("readRDDFromFile", "serveIterator"),
    "PythonUtils": ("getBroadcastThreshold", "toSeq"),
    "SimplePythonFunction": (),
}


def start_session(settings: Mapping[str, str], scratch: Path) -> SparkSession:
    """A session in a JVM that this process starts, and that ends with it. `scratch`: the folder of the settings.

    Raises JvmError.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    use_this_python()
    if SparkContext._gateway is None:
        process = start_jvm(settings, scratch, _START_SECONDS_MAX)
        gateway = gateway_of(scratch)
        gateway.proc = process
        SparkContext._ensure_initialized(gateway=gateway)
    if SparkContext._active_spark_context is None:
        SparkContext(conf=SparkConf().setAll(list(settings.items())))
    return session_with(settings)


def use_this_python() -> None:
    """Has Spark's tasks run in this interpreter, with one thread each: the tasks are the parallelism."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.update(ONE_THREAD)


def gateway_of(folder: Path) -> ClientServer:
    """A connection to the JVM whose folder this is. Raises OSError, Py4JError."""
    with (folder / CONNECTION).open("rb") as file:
        port, secret = read_int(file), UTF8Deserializer().loads(file)
    os.environ[_GATEWAY_PORT], os.environ[_GATEWAY_SECRET] = str(port), str(secret)
    try:
        return launch_gateway()
    finally:
        del os.environ[_GATEWAY_PORT], os.environ[_GATEWAY_SECRET]


def session_with(settings: Mapping[str, str]) -> SparkSession:
    """The session on the context of this process."""
    session = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    _keep_classes(session)
    return session


def _keep_classes(session: SparkSession) -> None:
    """Keeps the JVM's classes and methods that each job uses.

    Py4J would ask the JVM for them at each use, which then searches all jars for a class of the simple name: a quarter
    of the processor time that a job of two small tasks takes in the JVM.
    """
    view: Any = session.sparkContext._jvm
    for name, methods in _CLASSES_OF_JOBS.items():
        java_class = getattr(view, name)
        vars(view)[name] = java_class
        vars(java_class).update({method: getattr(java_class, method) for method in methods})
