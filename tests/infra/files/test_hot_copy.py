"""Rows by position: the same from a copy and from Parquet, and no fault of the cache is the caller's."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.infra.files.errors import CorruptFile
from app.infra.files.lookups import hot_copy
from app.infra.files.lookups.hot_copy import HotCopies
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.parquet_file import ParquetReader, create_parquet
from app.infra.files.storage import LocalStorage
from app.kernel.format.file_group import StoredFile
from app.kernel.format.schema.schema import Field, Schema

SCHEMA = Schema(
    id=1,
    fields=(
        Field(id=1, name="id", type="string", nullable=False),
        Field(id=2, name="n", type="int32"),
        Field(id=3, name="tags", type="map<string, list<int32>>"),
    ),
).to_arrow()
LATER = Schema(
    id=2,
    fields=(
        Field(id=4, name="note", type="string"),
        Field(id=2, name="number", type="int64"),
        Field(id=1, name="id", type="string", nullable=False),
    ),
).to_arrow()
ROWS = 5_000
GROUP_ROWS = 1_024
# A row of each row group: a file is copied when they are taken for the second time.
OF_EVERY_GROUP = list(range(0, ROWS, GROUP_ROWS))


def rows(count: int) -> pa.Table:
    values: list[dict[str, Any]] = [
        {"id": f"key-{at}", "n": at if at % 5 else None, "tags": [("x", [at, None])] if at % 3 else None}
        for at in range(count)
    ]
    return pa.Table.from_pylist(values, schema=SCHEMA)


TABLE = rows(ROWS)


def write(storage: LocalStorage, path: str, table: pa.Table) -> StoredFile:
    with create_parquet(storage, path, table.schema, row_group_rows=GROUP_ROWS) as sink:
        sink.write(table)
        sink.finish()
    return sink.stored(1)


class Lake:
    """One data file, and a folder for copies beside it."""

    def __init__(self, path: Path, folder: bool = True, bytes_max: int = 10**8) -> None:
        (path / "lake").mkdir()
        self.storage = LocalStorage(path / "lake")
        self.file = write(self.storage, "d/a", TABLE)
        self.hot = path / "hot"
        self.copies = HotCopies(
            ParquetReader(self.storage), HotFolder(self.hot, bytes_max) if folder else None
        )

    def taken(self, positions: Sequence[int], schema: pa.Schema = SCHEMA) -> list[dict[str, Any]]:
        found = self.copies.take(self.file, np.array(positions, dtype=np.int64), schema)
        assert found.schema.equals(schema)
        return found.to_pylist()

    def copied(self) -> list[Path]:
        return [file for file in self.hot.rglob("*") if file.is_file()]

    def lose_the_file(self) -> None:
        self.storage.delete([self.file.path])


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_copy, "_BATCH_ROWS", 1_500)


@pytest.fixture(scope="module", params=["copy", "parquet"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("lake"), folder=request.param == "copy")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, ROWS - 1), max_size=20))
def test_rows_are_read_in_the_requested_order(lake: Lake, positions: list[int]) -> None:
    """Also twice, if they were requested twice."""
    assert lake.taken(positions) == TABLE.take(pa.array(positions, pa.int64())).to_pylist()


def test_whole_copy_equals_the_file(lake: Lake) -> None:
    assert lake.taken(range(ROWS)) == TABLE.to_pylist()
    assert lake.copies.read(lake.file, SCHEMA).to_pylist() == TABLE.to_pylist()


def test_rows_are_read_under_another_schema(lake: Lake) -> None:
    """Columns are found by id: one was renamed and widened, one came, one went."""
    expected = [
        {"note": None, "number": TABLE["n"][at].as_py(), "id": f"key-{at}"} for at in (4_999, 0, 2_000)
    ]
    assert lake.taken([4_999, 0, 2_000], LATER) == expected
    assert lake.copies.read(lake.file, LATER).slice(2_000, 1).to_pylist() == expected[2:]


@pytest.mark.parametrize("wrong", [-1, ROWS])
def test_row_beyond_the_end_is_refused(lake: Lake, wrong: int) -> None:
    with pytest.raises(IndexError, match="d/a has 5000 rows"):
        lake.taken([0, wrong])


def test_copy_serves_other_processes(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.taken(OF_EVERY_GROUP)
    lake.taken([7])
    lake.lose_the_file()
    assert lake.taken([8]) == TABLE.slice(8, 1).to_pylist()
    others = HotCopies(ParquetReader(lake.storage), HotFolder(lake.hot, 10**8))
    assert others.take(lake.file, np.array([9]), SCHEMA).to_pylist() == TABLE.slice(9, 1).to_pylist()
    assert others.read(lake.file, SCHEMA).to_pylist() == TABLE.to_pylist()


def test_small_files_have_no_copy(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    small = write(lake.storage, "d/small", TABLE.slice(0, hot_copy.COPIED_ROWS_MIN - 1))
    found = lake.copies.take(small, np.array([1, 1_500]), SCHEMA)
    assert found.to_pylist() == TABLE.take([1, 1_500]).to_pylist()
    assert lake.copied() == []


def test_file_is_copied_once_more_row_groups_would_be_decoded_than_it_has(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for positions in ([4_999], [0, 1, 1_023], [2, 1_024], [3]):
        assert lake.taken(positions) == TABLE.take(positions).to_pylist()
        assert lake.copied() == []
    assert lake.taken([3]) == TABLE.slice(3, 1).to_pylist()
    assert len(lake.copied()) == 1


def test_file_writer_publishes_a_copy(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.copies.creating(lake.file.path) as copy:
        for start in range(0, ROWS, 700):
            copy.write(TABLE.slice(start, 700))
            assert copy.wanted
    lake.lose_the_file()
    assert lake.taken([4_999, 3]) == TABLE.take([4_999, 3]).to_pylist()


def test_failed_writer_leaves_no_copy(tmp_path: Path) -> None:
    lake = Lake(tmp_path)

    def fails() -> None:
        with lake.copies.creating(lake.file.path) as copy:
            copy.write(TABLE)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fails()
    assert lake.copied() == []


def test_empty_file_has_no_copy(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.copies.creating("d/empty") as copy:
        copy.write(TABLE.slice(0, 0))
    assert lake.copied() == []


def test_copies_are_off_without_a_folder(tmp_path: Path) -> None:
    lake = Lake(tmp_path, folder=False)
    with lake.copies.creating(lake.file.path) as copy:
        copy.write(TABLE)
        assert not copy.wanted


def test_file_larger_than_the_folder_is_read_directly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(tmp_path, bytes_max=50_000)
    lake.taken(OF_EVERY_GROUP)
    with caplog.at_level(logging.WARNING):
        assert lake.taken(OF_EVERY_GROUP) == TABLE.take(OF_EVERY_GROUP).to_pylist()
    assert "d/a has no hot copy: it exceeds the limit of the folder" in caplog.text
    assert lake.copied() == []


@pytest.mark.parametrize("step", ["create", "publish"])
def test_full_disk_only_prevents_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(HotFolder, {"create": "create", "publish": "admit"}[step], full)
    lake = Lake(tmp_path)
    with caplog.at_level(logging.WARNING), lake.copies.creating(lake.file.path) as copy:
        for start in range(0, ROWS, 700):
            copy.write(TABLE.slice(start, 700))
    assert lake.taken([4_999]) == TABLE.slice(4_999, 1).to_pylist()
    assert "No space left on device" in caplog.text
    assert lake.copied() == []


@pytest.mark.parametrize("damage", [b"", b"no copy"])
def test_unreadable_copy_is_written_again(tmp_path: Path, damage: bytes) -> None:
    lake = Lake(tmp_path)
    for _ in range(2):
        lake.taken(OF_EVERY_GROUP)
    (copy,) = lake.copied()
    copy.unlink()
    copy.write_bytes(damage)
    for _ in range(2):
        assert lake.taken(OF_EVERY_GROUP) == TABLE.take(OF_EVERY_GROUP).to_pylist()
    lake.lose_the_file()
    assert lake.taken([8]) == TABLE.slice(8, 1).to_pylist()


def test_damaged_file_is_not_copied(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    damaged = write(lake.storage, "d/damaged", TABLE)
    path = tmp_path / "lake" / "d" / "damaged"
    content = bytearray(path.read_bytes())
    content[1_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptFile, match="d/damaged is damaged"):
        lake.copies.take(damaged, np.array([0]), SCHEMA)
    assert lake.copied() == []
