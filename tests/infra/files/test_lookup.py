"""Looking up keys, against a search through all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.infra.files.deletion_vector_file import VectorReader, write_vectors
from app.infra.files.errors import CorruptFile
from app.infra.files.lookups import hot_copy, lookup
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.lookups.key_index_file import write_index
from app.infra.files.lookups.lookup import FoundRows, KeyLookup
from app.infra.files.parquet_file import ParquetReader, create_parquet
from app.infra.files.storage import ArrowStorage, LocalStorage, Storage
from app.kernel.format.file_group import DataFile, IndexKind, Slot
from app.kernel.format.index import key_index
from app.kernel.format.index.deletion_vector import positions_set
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.index.key_index import BloomFilter, KeyIndex
from app.kernel.format.rows.record_key import encode_keys
from app.kernel.format.schema.schema import Field, Schema
from tests.support.examples import a_third_of

KEY = ["name", "number"]
SCHEMA = Schema(
    id=1,
    fields=(
        Field(id=1, name="name", type="string", nullable=False),
        Field(id=2, name="value", type="int32"),
        Field(id=3, name="number", type="int64", nullable=False),
    ),
).to_arrow()
KEYS_MAX = 40


def table(keys: list[int], first_value: int = 0) -> pa.Table:
    """Rows with these keys; every value is there once."""
    values = [
        {"name": f"k{key // 2}", "number": key % 2, "value": first_value + at} for at, key in enumerate(keys)
    ]
    return pa.Table.from_pylist(values, schema=SCHEMA)


def canonical(keys: list[int]) -> pa.ChunkedArray:
    return encode_keys(table(keys), KEY)


class Searched:
    """Data files on a storage, and a lookup in them."""

    def __init__(self, path: Path, *, local: bool = True, folder: bool = True) -> None:
        path.mkdir(exist_ok=True)
        below = pafs.SubTreeFileSystem(str(path), pafs.LocalFileSystem())
        self.storage: Storage = LocalStorage(path) if local else ArrowStorage(below, "")
        self.hot = HotFolder(path / "hot", 10**8) if folder else None
        self.files: list[DataFile] = []
        self.reset()

    def reset(self) -> None:
        """Nothing is remembered in this process."""
        reader = ParquetReader(self.storage)
        self.lookup = KeyLookup(self.storage, reader, VectorReader(self.storage), self.hot)

    def add(self, rows: pa.Table, deleted: list[int], kind: IndexKind | None) -> None:
        name = f"{len(self.files)}"
        with create_parquet(self.storage, f"data{name}", SCHEMA, row_group_rows=3) as sink:
            sink.write(rows)
            sink.finish()
        file = DataFile(
            **msgspec.structs.asdict(sink.stored(1)),
            file_group="g",
            slot=Slot(partition_path="", bucket=0),
        )
        if deleted:
            bitmap = positions_set(np.array(deleted))
            vectors = write_vectors(self.storage, f"deletes{name}", {file.path: bitmap})
            file = msgspec.structs.replace(file, deletion_vector=vectors[file.path])
        if kind is not None:
            hashes = lookup.hash_keys(encode_keys(rows, KEY))
            index = KeyIndex if kind is IndexKind.RECORD else BloomFilter
            written = write_index(self.storage, f"index{name}", index.of_hashes(hashes))
            file = msgspec.structs.replace(file, index_file=written)
        self.files.append(file)

    def find(self, keys: list[int], schema: pa.Schema = SCHEMA) -> list[FoundRows]:
        return list(self.lookup.find_rows(self.files, canonical(keys), KEY, schema))


def places(found: list[FoundRows]) -> list[tuple[int, int, int]]:
    """(number of the key requested, number of the file, position), sorted."""
    return sorted(
        (int(incoming), part.file, int(position))
        for part in found
        for incoming, position in zip(part.incoming, part.positions, strict=True)
    )


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[list[int], list[int], IndexKind | None]], list[int]]:
    """Files as (keys, deleted positions, index), with at most one live row of a key; and keys to search."""
    files = []
    live: set[int] = set()
    for _ in range(draw(st.integers(0, 3))):
        keys = draw(st.lists(st.integers(0, KEYS_MAX), min_size=1, max_size=15))
        deleted = []
        for position, key in enumerate(keys):
            if key in live or draw(st.booleans()):
                deleted.append(position)
            else:
                live.add(key)
        files.append((keys, deleted, draw(st.sampled_from([None, *IndexKind]))))
    return files, draw(st.lists(st.integers(0, KEYS_MAX), max_size=15))


@pytest.fixture(params=[1, 2**64 - 1], ids=["collisions", "hashes"])
def _hashes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with hashes of one bit, so that most rows found by hash have another key."""

    def masked(keys: pa.ChunkedArray) -> np.ndarray:
        return hash_keys(keys) & np.uint64(request.param)

    for module in (lookup, key_index):
        monkeypatch.setattr(module, "hash_keys", masked)
    monkeypatch.setattr(lookup, "KEPT_ROWS_MIN", 4)
    monkeypatch.setattr(hot_copy, "COPIED_ROWS_MIN", 6)


@pytest.mark.usefixtures("_hashes")
@pytest.mark.parametrize("local", [True, False], ids=["local", "remote"])
@pytest.mark.parametrize("folder", [True, False], ids=["folder", "none"])
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=a_third_of(40), deadline=None
)
@given(case=tables())
def test_lookup_finds_exactly_the_live_rows(
    tmp_path_factory: pytest.TempPathFactory,
    local: bool,
    folder: bool,
    case: tuple[list[tuple[list[int], list[int], IndexKind | None]], list[int]],
) -> None:
    files, requested = case
    searched = Searched(tmp_path_factory.mktemp("lookup"), local=local, folder=folder)
    expected, values = [], []
    for number, (keys, deleted, kind) in enumerate(files):
        rows = table(keys, first_value=100 * number)
        searched.add(rows, deleted, kind)
        for incoming, wanted in enumerate(requested):
            for position, key in enumerate(keys):
                if key == wanted and position not in deleted:
                    expected.append((incoming, number, position))
                    values.append(100 * number + position)
    for attempt in range(3):
        # The second time rows are copied, and the third time read from what is in the folder.
        found = searched.find(requested)
        assert places(found) == sorted(expected)
        assert sorted(row["value"] for part in found for row in part.rows.to_pylist()) == sorted(values)
        for part in found:
            assert part.positions.tolist() == sorted(part.positions.tolist())
            taken = encode_keys(part.rows, KEY).to_pylist()
            assert taken == canonical(requested).take(pa.array(part.incoming)).to_pylist()
        if attempt:
            searched.reset()


def test_lookup_by_hash_returns_all_live_rows_with_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller compares the keys."""

    def same(keys: pa.ChunkedArray) -> np.ndarray:
        return np.full(len(keys), 7, dtype=np.uint64)

    monkeypatch.setattr(key_index, "hash_keys", same)
    searched = Searched(tmp_path)
    for first in (0, 10):
        searched.add(table([first, first + 1, first + 2]), [1], None)
    wanted = np.array([8, 7], dtype=np.uint64)
    found = list(searched.lookup.rows_of_hashes(searched.files, wanted, KEY, SCHEMA))
    assert places(found) == [(1, 0, 0), (1, 0, 2), (1, 1, 0), (1, 1, 2)]


def test_lookup_reads_only_the_requested_columns(tmp_path: Path) -> None:
    searched = Searched(tmp_path)
    searched.add(table([3, 1, 2]), [], None)
    schema = pa.schema([SCHEMA.field("number"), SCHEMA.field("name")])
    (part,) = searched.find([2, 9, 3], schema)
    assert part.rows.to_pylist() == [{"number": 1, "name": "k1"}, {"number": 0, "name": "k1"}]
    assert (part.positions.tolist(), part.incoming.tolist()) == ([0, 2], [2, 0])


def test_file_with_a_negative_bloom_filter_is_not_read(tmp_path: Path) -> None:
    searched = Searched(tmp_path)
    searched.add(table([1, 2]), [], IndexKind.BLOOM)
    searched.add(table([3]), [], IndexKind.RECORD)
    searched.storage.delete([searched.files[0].path])
    assert places(searched.find([3])) == [(0, 1, 0)]


def test_lookup_stops_when_all_keys_are_found(tmp_path: Path) -> None:
    searched = Searched(tmp_path)
    for keys in ([1, 2], [3]):
        searched.add(table(keys), [], IndexKind.RECORD)
    searched.storage.delete(searched.files[1].paths)
    assert places(searched.find([2, 1, 2])) == [(0, 0, 1), (1, 0, 0), (2, 0, 1)]


def test_local_indexes_and_copies_replace_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "KEPT_ROWS_MIN", 2)
    monkeypatch.setattr(hot_copy, "COPIED_ROWS_MIN", 2)
    searched = Searched(tmp_path, local=False)
    searched.add(table([1, 2]), [], None)
    searched.add(table([3, 4]), [], IndexKind.RECORD)
    expected = places(searched.find([4, 1]))
    # The second time, rows are copied.
    assert places(searched.find([4, 1])) == expected
    searched.storage.delete([path for file in searched.files for path in file.paths])
    searched.reset()
    assert places(searched.find([4, 1])) == expected == [(0, 1, 1), (1, 0, 0)]


def test_unreadable_local_index_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "KEPT_ROWS_MIN", 2)
    searched = Searched(tmp_path)
    searched.add(table([1, 2]), [], None)
    assert searched.hot is not None
    searched.hot.put(f"{searched.files[0].path}#keys", lambda file: file.write(b"no index"))
    assert places(searched.find([2])) == [(0, 0, 1)]


def test_damaged_index_is_refused(tmp_path: Path) -> None:
    searched = Searched(tmp_path)
    searched.add(table([1, 2]), [], IndexKind.RECORD)
    (tmp_path / "index0").write_bytes(b"x" * 10)
    with pytest.raises(CorruptFile) as caught:
        searched.find([2])
    assert caught.value.facts == {"path": "index0"}


def test_renamed_key_column_is_found_by_id(tmp_path: Path) -> None:
    searched = Searched(tmp_path)
    searched.add(table([1, 2]), [], None)
    renamed: list[Any] = [field.with_name({"name": "label"}.get(field.name, field.name)) for field in SCHEMA]
    found = list(
        searched.lookup.find_rows(searched.files, canonical([2]), ["label", "number"], pa.schema(renamed))
    )
    assert places(found) == [(0, 0, 1)]
    assert found[0].rows.column_names == ["label", "value", "number"]
