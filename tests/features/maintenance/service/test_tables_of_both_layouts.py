"""Tables with files of both layouts, against tables with the same past and new files only."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs

from app.core.jobs.kinds.read import ReadQuery
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.lookups.lookup import KeyLookup
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit.clustering_plan import plan_clustering
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.clustering import ClusterBy
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateField, CreateSchema
from app.kernel.format.file_group import DataFile
from app.kernel.format.operation import Operation
from app.kernel.format.rows.file_columns import LAYOUT
from app.kernel.format.rows.record_key import encode_keys
from tests.support.earlier_layout import earlier_layout
from tests.support.lake_table import COMPACT, LakeTable, Write, merged
from tests.support.read_runs import Reads
from tests.support.restore_runs import Restorer
from tests.support.shares import share
from tests.support.small_files import without_small_files
from tests.support.versioned_tables import (
    DAYS,
    KINDS,
    VersionedTable,
    comparable,
    new_versioned_table,
    random_row,
    registration_of,
)
from workers.engine.task_files import TaskResources

Row = dict[str, Any]
TYPES = {
    "id": "uint32", "day": "string", "n": "uint16", "note": "string", "small": "uint8",
    "s": "struct<x: uint16, l: list<uint32>>", "m": "map<string, uint32>",
}  # fmt: skip
BEFORE = 4
"""The number of writes before the release that has layouts."""
MARKED = ("merge_on_read full", "key_dynamic with deletion vectors", "unaware with deletion vectors")
Layout = Callable[[], AbstractContextManager[None]]


@dataclass(kw_only=True)
class Past:
    """One of the two tables."""

    root: Path
    kind: str
    layout: Layout
    versioned: VersionedTable = field(init=False)

    def __post_init__(self) -> None:
        self.root.mkdir()
        self.storage = LocalStorage(self.root)
        fields = [CreateField(name=name, type=kind) for name, kind in TYPES.items()]
        registration = structs.replace(registration_of(self.kind), schema=CreateSchema(fields=fields))
        definition = define_dataset(registration)
        definition = without_small_files(definition) if self.kind in MARKED else definition
        self.versioned = new_versioned_table(self.storage, definition)
        self.table.name = "t"

    @property
    def table(self) -> LakeTable:
        return self.versioned.table

    def write(self, write: Write, *, earlier: bool) -> None:
        with self.layout() if earlier else nullcontext():
            self.versioned.write(write, ())

    def cluster(self) -> None:
        self.table.attempts += 1
        tasks = plan_clustering(
            self.table.dataset,
            self.table.files.values(),
            ClusterBy(columns=("n", "id")),
            attempt=f"20260102030405000000-{self.table.attempts:06x}-1-0",
            data_prefix=self.table.name,
        )
        resources = TaskResources.on(self.storage, MemoryBudget(bytes_max=2**26))
        self.table.commit((), merged(resources, tasks))
        self.versioned.note(())

    def restore(self, version: int) -> None:
        Restorer(versioned=self.versioned).to(version)

    def read(self, query: ReadQuery = ReadQuery.SNAPSHOT, **options: Any) -> list[Row]:
        reads = Reads(versioned=self.versioned, storage=self.storage, root=self.root)
        return comparable(reads.read(query, **options).rows)

    def found(self, rows: list[Row]) -> list[Row]:
        """The live rows with the keys of these, by lookup."""
        key = list(self.table.dataset.record_key)
        schema = pa.schema([self.table.dataset.schema.to_arrow().field(name) for name in TYPES])
        keys = encode_keys(pa.Table.from_pylist(rows, schema=schema), key)
        reader, folder = self.table.reader, HotFolder(self.root / "hot", 2**24)
        lookup = KeyLookup(self.storage, reader, VectorReader(self.storage), folder)
        files = list(self.table.files.values())
        return comparable(
            [
                row
                for _ in range(2)
                for part in lookup.find_rows(files, keys, key, schema)
                for row in part.rows.to_pylist()
            ]
        )


def wide_row(chance: random.Random, number: int) -> Row:
    """A row whose numbers are those that the unsigned types have at their ends, too."""
    far = chance.choice([0, 2**32 - 1, 2**31])
    return random_row(chance, number) | {
        "small": chance.choice([0, 127, 128, 255]),
        "s": {"x": chance.choice([0, 65_535]), "l": [far, None]} if chance.random() < 0.8 else None,
        "m": [("a", far)],
    }


def steps(seed: str, *, keyed: bool, key: tuple[str, ...]) -> Iterator[Write]:
    chance = random.Random(seed)
    for number in range(2 * BEFORE):
        rows = [wide_row(chance, number) for _ in range(chance.randint(6, 12))]
        if number % 3 == 2 and keyed:
            bare = [{name: row[name] for name in key} for row in rows]
            yield Write(operation=Operation.DELETE, rows=bare)
        elif number % 3 == 2:
            yield Write(operation=Operation.DELETE, options=WriteOptions(where="n < 30"))
        else:
            yield Write(operation=Operation.UPSERT if keyed else Operation.INSERT, rows=rows)


def both(root: Path, kind: str) -> tuple[Past, Past]:
    """A table whose first files have no layout, and the other."""
    mixed = Past(root=root / "mixed", kind=kind, layout=earlier_layout)
    new = Past(root=root / "new", kind=kind, layout=nullcontext)
    return mixed, new


def check(mixed: Past, new: Past) -> None:
    assert comparable(mixed.table.rows(meta=True)) == comparable(new.table.rows(meta=True))
    assert mixed.table.changes() == new.table.changes()
    check_layouts(mixed.table)


def check_layouts(table: LakeTable) -> None:
    """Each file has the layout that its entry states."""
    for file in table.files.values():
        assert (stored_type(table, file, "small") == pa.uint8()) == (file.layout is None), file.path
        assert file.layout in (None, LAYOUT)


def stored_type(table: LakeTable, file: DataFile, name: str) -> pa.DataType:
    return pq.read_schema(table.storage.open(file.path)).field(name).type


def _earlier_files(past: Past) -> list[DataFile]:
    return [file for file in past.table.files.values() if file.layout is None]


@share(4)
@pytest.mark.parametrize("kind", KINDS)
def test_table_of_both_layouts_equals_one_of_new_files(tmp_path: Path, kind: str) -> None:
    mixed, new = both(tmp_path, kind)
    definition = mixed.table.dataset
    listed: set[str] = set()
    marks = 0
    for number, write in enumerate(steps(kind, keyed=definition.keyed, key=definition.record_key)):
        for past in (mixed, new):
            past.write(write, earlier=number < BEFORE)
        check(mixed, new)
        if number + 1 == BEFORE:
            assert {file.layout for file in mixed.table.files.values()} == {None}
            listed = set(mixed.table.files)
        elif number >= BEFORE:
            without = {file.path for file in _earlier_files(mixed)}
            assert without <= listed
            # A file that was only marked is the same file.
            marks += sum(file.deletion_vector is not None for file in _earlier_files(mixed))
    assert marks or kind not in MARKED
    for service in (lambda past: past.write(COMPACT, earlier=False), Past.cluster):
        for past in (mixed, new):
            service(past)
        check(mixed, new)
    assert comparable(mixed.table.changed_rows(2)) == comparable(new.table.changed_rows(2))
    last = mixed.table.version
    assert last == new.table.version
    for version in (2, BEFORE, BEFORE + 2, last):
        assert mixed.read(version=version) == new.read(version=version)
        assert mixed.read(version=version, where="id > 10 and n < 70") == new.read(
            version=version, where="id > 10 and n < 70"
        )
    if definition.keyed:
        rows = [wide_row(random.Random(0), 0) | {"id": at, "day": day} for at in range(20) for day in DAYS]
        assert mixed.found(rows) == new.found(rows)
    for past in (mixed, new):
        past.restore(2)
    check(mixed, new)
