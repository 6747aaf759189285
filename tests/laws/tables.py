"""Histories on tables of files in this process, without a service: plans, merge and files as they are."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from app.features.writes.service.plan import intent_of
from app.infra.files import data_sink
from app.infra.files.lookups import lookup
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit import small_files
from app.kernel.commit.clustering_plan import plan_clustering
from app.kernel.commit.write_options import WriteOptions
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.clustering import ClusterBy
from app.kernel.format.dataset import DatasetDefinition, Deletes
from app.kernel.format.definition.dataset_definition import define_dataset, with_deletes
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.errors import InvalidDataset
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.kept_fields import KEPT_COLUMN, kept_text
from tests.laws.model import KEPT
from tests.support.lake_table import LakeTable, Write, merged
from tests.support.restore_runs import Restorer
from tests.support.versioned_tables import VersionedTable
from workers.engine.merge import append_write, task_report
from workers.engine.task_files import TaskResources

Json = dict[str, Any]
OPS: Final = {"+A": Op.APPEND, "-R": Op.RETRACT, "-C": Op.CORRECT_FROM, "+C": Op.CORRECT_TO}
SYMBOLS: Final = {int(op): symbol for symbol, op in OPS.items()}


def is_valid(registration: Json) -> bool:
    """Whether a dataset can be registered so."""
    try:
        defined(registration)
    except InvalidDataset:
        return False
    return True


def defined(registration: Json) -> DatasetDefinition:
    """The definition of a registration without a name."""
    return define_dataset(msgspec.convert({"name": "t", **registration}, CreateDataset))


@dataclass(frozen=True, kw_only=True)
class _PlannedWrite(Write):
    """A write with the intent that the service plans it with."""

    planned: WriteIntent

    @property
    def intent(self) -> WriteIntent:
        return self.planned


class FileTable:
    """One table of files."""

    has_clock = True

    def __init__(self, resources: TaskResources, registration: Json) -> None:
        self.dataset = defined(registration)
        self.types = {each["name"]: each["type"] for each in registration["schema"]["fields"]}
        self.table = LakeTable(
            storage=resources.storage,
            dataset=self.dataset,
            run=partial(merged, resources),
        )
        self.versioned = VersionedTable(table=self.table, schemas={1: self.dataset.schema})

    @property
    def version(self) -> int:
        return self.table.version

    def commit(self, writes: Sequence[Json]) -> list[bool]:
        """Commits writes together. Returns which of them were refused; the others are committed."""
        left = list(range(len(writes)))
        while left:
            outcome = self.table.write(*[self._write(writes[number]) for number in left])
            self._note()
            if not outcome.conflicts:
                break
            refused = {conflict.job for conflict in outcome.conflicts}
            left = [number for at, number in enumerate(left) if at not in refused]
        return [number not in left for number in range(len(writes))]

    def serve(self, service: str) -> None:
        """Runs a table service."""
        if service == "compact":
            self.table.compact()
        else:
            self._cluster()
        self._note()

    def restore(self, version: int) -> None:
        Restorer(versioned=self.versioned).to(version)

    def wait(self, seconds: float) -> None:
        self.table.now += dt.timedelta(seconds=seconds)

    def patch(self, keep_seconds: int) -> None:
        self.dataset = with_deletes(self.dataset, Deletes(keep_seconds=keep_seconds))
        self.table.dataset = self.dataset

    def rows(self) -> list[Json]:
        return self.table.rows()

    def rows_at(self, version: int) -> list[Json]:
        """The rows of an earlier version."""
        earlier = self.table.fork()
        earlier.files = {file.path: file for file in self.versioned.files[version]}
        return earlier.rows()

    def changes(self, since: int) -> list[tuple[str, Json]]:
        """The feed from an offset on."""
        return [
            (SYMBOLS[change.op], json_row(self.types, change.row))
            for change in self.table.changes()
            if change.offset >= since
        ]

    def _note(self) -> None:
        if self.table.version == len(self.versioned.files):
            self.versioned.note([])

    def _cluster(self) -> None:
        self.table.attempts += 1
        tasks = plan_clustering(
            self.dataset,
            self.table.files.values(),
            ClusterBy(columns=("n", "name")),
            attempt=f"20260102030405000000-{self.table.attempts:06x}-1-0",
            data_prefix=self.table.name,
            planned_at=self.table.now,
        )
        assert self.table.run is not None
        self.table.commit((), self.table.run(tasks))

    def _write(self, write: Json) -> Write:
        operation = Operation(write["operation"])
        options = msgspec.convert(
            {name: value for name, value in write.items() if name not in ("operation", "rows")}, WriteOptions
        )
        if operation is Operation.CHANGELOG:
            rows = [
                {OP_COLUMN: int(OPS[op]), **changed_row(self.dataset, self.types, row)}
                for op, row in write["rows"]
            ]
        else:
            rows = [self._row(row) for row in write.get("rows", ())]
        intent = intent_of(operation, options, self.dataset, self.table.now)
        return _PlannedWrite(operation=operation, rows=rows, options=options, planned=intent)

    def _row(self, row: Mapping[str, Any]) -> Json:
        return python_row(self.types, row)


@contextmanager
def small_limits(seed: int) -> Iterator[None]:
    """Limits so small that tables of few rows have indexes, marked rows and files that are merged."""
    limits = [
        (data_sink, "KEPT_ROWS_MIN", 1 if seed % 2 else 6),
        (lookup, "KEPT_ROWS_MIN", 1 if seed % 2 else 6),
        (small_files, "_SMALL_SHARE", 10**9 if seed % 4 == 3 else 4),
        (small_files, "_ROWS_MAX", (0, 4, 10**6)[seed // 2 % 3]),
        *[(module, "SMALL_CHANGES_BYTES", 0) for module in (append_write, task_report) if seed % 5],
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in limits]
    for module, name, value in limits:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


@dataclass
class Tables:
    """Makes tables. Of each the files are removed when the next one is made."""

    resources: TaskResources
    last: str | None = None

    def __call__(self, registration: Json) -> FileTable:
        storage = self.resources.storage
        assert isinstance(storage, LocalStorage)
        if self.last is not None:
            shutil.rmtree(storage.root / self.last, ignore_errors=True)
        made = FileTable(self.resources, registration)
        self.last = made.table.name
        return made


@contextmanager
def new_tables() -> Iterator[Tables]:
    """Tables in folders of their own."""
    with tempfile.TemporaryDirectory(prefix="laws-") as name:
        root = Path(name)
        folders = [root / each for each in ("storage", "hot", "scratch")]
        for folder in folders:
            folder.mkdir()
        storage, hot, scratch = folders
        memory_budget = MemoryBudget(bytes_max=2**26, scratch=scratch)
        yield Tables(TaskResources.on(LocalStorage(storage), memory_budget, HotFolder(hot, 2**26)))


def python_row(types: Mapping[str, str], row: Mapping[str, Any]) -> Json:
    """A row of JSON with the values that Python has for them."""
    return {name: _value(types[name], value) for name, value in row.items()}


def changed_row(dataset: DatasetDefinition, types: Mapping[str, str], row: Mapping[str, Any]) -> Json:
    """The row of a change with the values that Python has for them, and with the fields that it keeps."""
    values = python_row(types, {name: value for name, value in row.items() if value != KEPT})
    kept = kept_text(dataset.schema.field(name).id for name, value in row.items() if value == KEPT)
    return values if kept is None else {**values, KEPT_COLUMN: kept}


def _value(kind: str, value: Any) -> Any:
    """A value of JSON as Python has it."""
    if value is None:
        return None
    if kind.startswith("struct"):
        return {
            "ts": _value(kind[len("struct<ts: ") : -len(", by: string>")], value["ts"]),
            "by": value.get("by"),
        }
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind == "date":
        return dt.date.fromisoformat(value)
    return list(value.items()) if kind.startswith("map") else value


def json_row(types: Mapping[str, str], row: Mapping[str, Any]) -> Json:
    """A row of Python with the values that JSON has for them."""
    return {name: _json(types[name], value) for name, value in row.items()}


def _json(kind: str, value: Any) -> Any:
    """A value of Python as JSON has it."""
    if kind.startswith("struct") and value is not None:
        return {name: _json("", member) for name, member in value.items()}
    if kind.startswith("map") and value is not None:
        return dict(value)
    return str(value) if isinstance(value, Decimal | dt.date) else value
