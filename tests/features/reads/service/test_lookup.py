"""Lookups of keys in tables of every kind, against a plain model of their rows."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.ipc as ipc
import pytest

from app.core.changes.positions import StartingPosition
from app.core.changes.service.read_changes import ReadChanges
from app.features.reads.service.lookup import KEYS_MAX, RowLookup
from app.features.reads.values import KeyQuery
from app.infra.files.lookups import hot_copy, lookup
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.lookups.key_search import KeySearch
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.format.errors import InvalidRequest, MaskedColumn
from app.kernel.format.rows.changelog import SYMBOLS
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.features.reads.service.test_read_jobs import row_versions
from tests.support.retained_versions import versions_of
from tests.support.shares import share
from tests.support.table_feed import TableFeed, later_corrections_of
from tests.support.versioned_tables import DAYS, KINDS, VersionedTable, written_versioned_table

Row = dict[str, Any]
KEYED = [name for name, parts in KINDS.items() if parts.get("record_key") != []]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    return LocalStorage(tmp_path_factory.mktemp("storage"))


@pytest.fixture(scope="module")
def versioned_tables(storage: LocalStorage) -> Any:
    """The table of each kind, written once for the module."""
    return cache(lambda kind: written_versioned_table(storage, kind))


def use_case(versioned: VersionedTable, hot: HotFolder | None = None) -> RowLookup:
    table = versioned.table
    feed = TableFeed(table=table)
    return RowLookup(
        catalog=versioned,
        timeline=versioned,  # type: ignore[arg-type]
        versions=versions_of(versioned),
        search=KeySearch(table.storage, table.reader, MemoryBudget(bytes_max=2**26), hot),
        changes=ReadChanges(catalog=feed, index=feed, reader=table.reader),  # type: ignore[arg-type]
        later=later_corrections_of(versioned),
    )


def every_key(versioned: VersionedTable) -> list[Row]:
    """Every key that rows of the table could have."""
    names = versioned.table.dataset.record_key
    keys = [{"id": number, "day": day} for number in range(20) for day in DAYS]
    return list(
        {json.dumps(key): key for key in ({name: each[name] for name in names} for each in keys)}.values()
    )


def rows_of_keys(
    versioned: VersionedTable,
    keys: list[Row],
    access: RowAccess = EVERYTHING,
    lookup: RowLookup | None = None,
    **query: Any,
) -> list[tuple[Row, int, int | None] | None]:
    """By key, its row with version and offset; None without a row."""
    lookup = lookup or use_case(versioned)
    table = lookup.keys(versioned.dataset, [json.dumps(key) for key in keys], "/keys")
    found = lookup.find(versioned.dataset, table, KeyQuery(**query), access)
    columns = found.rows.to_pylist(), found.row_versions.to_pylist(), found.row_offsets.to_pylist()
    return [None if row[1] is None else row for row in zip(*columns, strict=True)]


@share(4)
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("kind", KEYED)
def test_every_key_has_its_row_at_every_version(
    versioned_tables: Any, kind: str, small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:
        # Indexes of files are kept in the folder from the first use on, and copies from the second.
        monkeypatch.setattr(lookup, "KEPT_ROWS_MIN", 1)
        monkeypatch.setattr(hot_copy, "COPIED_ROWS_MIN", 1)
    versioned = versioned_tables(kind)
    rows = use_case(versioned, HotFolder(tmp_path, 2**26))
    keys, names = every_key(versioned), versioned.table.dataset.record_key
    for version, live in enumerate(row_versions(versioned)):
        expected = {tuple(row[name] for name in names): (row, at) for row, at in live}
        wanted = [expected.get(tuple(key[name] for name in names)) for key in keys]
        for use in range(3):
            found = rows_of_keys(versioned, keys, version=version, lookup=rows)
            assert [each and each[:2] for each in found] == wanted, (version, use)
    kept = [ipc.open_file(path).schema.names for path in tmp_path.rglob("*") if path.is_file()]
    # Copies have the columns of the rows, and indexes have others.
    copies = [columns for columns in kept if names[0] in columns]
    assert small == (0 < len(copies) < len(kept))


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read full", "dynamic"])
def test_row_has_the_offset_of_the_change_that_set_it(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    changes = {change.offset: change for change in versioned.table.changes()}
    for found in rows_of_keys(versioned, every_key(versioned)):
        if found is not None:
            row, version, offset = found
            assert offset is not None
            assert (changes[offset].row, changes[offset].version) == (row, version)
            assert SYMBOLS[changes[offset].op] in ("+A", "+C")


def test_same_key_may_be_requested_twice(versioned_tables: Any) -> None:
    versioned = versioned_tables("copy_on_write")
    row = versioned.rows[-1][0]
    key = {"day": row["day"], "id": row["id"]}
    found = rows_of_keys(versioned, [key, {"day": "2030-01-01", "id": 1}, key], columns=("n",))
    assert [each and each[0] for each in found] == [{"n": row["n"]}, None, {"n": row["n"]}]


def test_lookup_shows_only_what_the_access_does(versioned_tables: Any) -> None:
    versioned = versioned_tables("merge_on_read input")
    access = RowAccess(where=("n < 50",), masked=("note",))
    rows = {(row["day"], row["id"]): row for row in versioned.rows[-1]}
    for found, key in zip(
        rows_of_keys(versioned, every_key(versioned), access), every_key(versioned), strict=True
    ):
        row = rows.get((key["day"], key["id"]))
        assert (found and found[0]) == (row | {"note": None} if row is not None and row["n"] < 50 else None)
    with pytest.raises(MaskedColumn):
        rows_of_keys(versioned, every_key(versioned), RowAccess(masked=("id",)))


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read full", "key_dynamic"])
def test_history_has_the_changes_of_the_key_up_to_the_version(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    lookup, names = use_case(versioned), versioned.table.dataset.record_key
    version = len(versioned.rows) - 3
    seen = 0
    for key in every_key(versioned)[::2]:
        expected = [
            change.offset
            for change in versioned.table.changes()
            if change.version <= version and all(change.row[name] == key[name] for name in names)
        ]
        keys = lookup.keys(versioned.dataset, [json.dumps(key)], "/key")
        found: list[int] = []
        position: int | StartingPosition = StartingPosition.EARLIEST
        while True:
            page = lookup.history(versioned.dataset, keys, position, 2, version, EVERYTHING)
            found += page.events.table.column("offset").to_pylist()
            if page.complete:
                break
            position = page.next_since
        assert found == expected
        seen += len(found)
    assert seen > 5


def test_keys_are_checked(versioned_tables: Any) -> None:
    lookup = use_case(versioned_tables("copy_on_write"))
    dataset = versioned_tables("copy_on_write").dataset
    for texts in ([], ['{"id": 1, "day": "x"}'] * (KEYS_MAX + 1), ['{"id": 1}'], ['{"id": "x", "day": "y"}']):
        with pytest.raises(InvalidRequest):
            lookup.keys(dataset, texts, "/keys")
    keyless = versioned_tables("unaware")
    with pytest.raises(InvalidRequest, match="record_key"):
        use_case(keyless).keys(keyless.dataset, ['{"id": 1}'], "/keys")
