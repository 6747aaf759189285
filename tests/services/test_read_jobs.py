"""Read jobs of tables of every kind, against a plain model of their rows, and the fold of their feeds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.files.storage import LocalStorage
from app.lake.file_format import FileFormat
from app.services.task_model import ReadQuery
from tests.support.past_tables import (
    KINDS,
    comparable,
    written_past,
)
from tests.support.read_runs import Reads

Row = dict[str, Any]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
INCREMENTAL = ReadQuery.INCREMENTAL


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def reads(root: Path) -> Any:
    """The read jobs of a table of each kind, which is written once for the module."""
    storage = LocalStorage(root)
    past = cache(lambda kind: written_past(storage, kind))
    return lambda kind, **more: Reads(past=past(kind), storage=storage, root=root, **more)


@EVERY_KIND
@pytest.mark.parametrize("format_", FileFormat)
def test_every_version_is_read_in_every_format(reads: Any, kind: str, format_: FileFormat) -> None:
    reader = reads(kind)
    for version, rows in list(enumerate(reader.past.rows))[:: 1 if format_ is FileFormat.JSON else 4]:
        found = reader.read(version=version, format=format_)
        assert comparable(found.rows) == comparable(rows)
        assert found.result.version == version
        assert found.result.rows == len(rows)
