"""One Spark session for the folder, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.infra.files.storage import LocalStorage
from tests.support.spark import running_engine
from workers.engine.spark_engine import SparkEngine


@pytest.fixture(scope="package")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the storage."""
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="package")
def storage(root: Path) -> LocalStorage:
    return LocalStorage(root)


@pytest.fixture(scope="package")
def engine(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    """A warm engine on that storage."""
    with running_engine(root, tmp_path_factory.mktemp("spark")) as engine:
        yield engine
