"""A warm engine on a Spark session in the process of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from app.infra.runtime.java import java_home
from workers.engine.session import start_session
from workers.engine.spark_engine import SparkEngine
from workers.engine.spark_settings import large_turns, session_settings
from workers.engine.task_setup import TaskSetup


def task_setup(root: Path, scratch: Path, *, memory_bytes: int = 2**30) -> TaskSetup:
    """Tasks on a local storage, with hot copies."""
    return TaskSetup(
        storage_uri=root.as_uri(),
        memory_bytes=memory_bytes,
        scratch=str(scratch),
        hot_folder=str(scratch / "hot"),
        hot_bytes_max=2**30,
        decompressed_bytes_max=2**30,
    )


@contextmanager
def running_engine(root: Path, scratch: Path, *, memory_bytes: int = 2**30) -> Iterator[SparkEngine]:
    """An engine on the storage whose root is `root`; `scratch` is for its own files."""
    before = dict(os.environ)
    os.environ["JAVA_HOME"] = str(java_home(scratch))
    settings = session_settings("local[2]", scratch, driver_memory="512m")
    start = partial(start_session, settings, scratch)
    setup = task_setup(root, scratch, memory_bytes=memory_bytes)
    engine = SparkEngine(
        start, setup, turns=large_turns("local[2]"), on_death=lambda: pytest.fail("the JVM died")
    )
    try:
        engine.warm_up()
        yield engine
    finally:
        engine.stop()
        os.environ.clear()
        os.environ.update(before)
