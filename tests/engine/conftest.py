"""One Spark session for the folder, in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from app.files.storage import LocalStorage
from app.runtime.java import java_home
from workers.engine.session import start_session
from workers.engine.spark_engine import SparkEngine
from workers.engine.tasks import TaskSetup


@pytest.fixture(scope="package")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the storage."""
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="package")
def storage(root: Path) -> LocalStorage:
    return LocalStorage(root)


def task_setup(root: Path, scratch: Path, *, memory_bytes: int = 2**30) -> TaskSetup:
    """Tasks on a local storage, with hot copies."""
    return TaskSetup(
        storage_uri=root.as_uri(),
        memory_bytes=memory_bytes,
        scratch=str(scratch),
        hot_folder=str(scratch / "hot"),
        hot_bytes_max=2**30,
    )


@pytest.fixture(scope="package")
def engine(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    """A warm engine on that storage."""
    scratch = tmp_path_factory.mktemp("spark")
    before = dict(os.environ)
    os.environ["JAVA_HOME"] = str(java_home(scratch))
    start = partial(start_session, "local[2]", scratch, driver_memory="512m")
    engine = SparkEngine(start, task_setup(root, scratch), died=lambda: pytest.fail("the JVM died"))
    engine.warm_up()
    yield engine
    engine.stop()
    os.environ.clear()
    os.environ.update(before)
