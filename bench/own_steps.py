"""Steps of the service by themselves: merge tasks, reads and pages in this process, statements against Postgres.

There is no Spark and no HTTP. A table of files is kept by the same tasks as Spark runs (`tests.support.lake_table`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import numpy as np
import psutil
import psycopg
import pyarrow.parquet as pq

from app.access.tenants.bootstrap import initialise
from app.core.catalog.values import Dataset
from app.core.changes.positions import FeedBounds
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.http.table_response import arrow_stream
from app.infra.db.session import Database
from app.infra.files.parquet_file import CHANGELOG_ROW_GROUP_ROWS, create_parquet
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.infra.runtime.postgres import EmbeddedPostgres
from app.kernel.changelog.forms import flat
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.file_group import ChangelogSegment
from app.kernel.format.operation import Operation
from bench.in_process import rows_of
from bench.planning import Table
from bench.processes import processor_seconds, tree
from bench.trips import definition, trips
from tests.support.lake_table import LakeTable, Write, merged
from workers.engine.task_files import TaskResources

_MERGE_BYTES: Final = 512 * 1024 * 1024
_SMALL_TABLES_ROWS: Final = (1_000, 20_000)
_WRITE_ROWS: Final = 100
_READ_ROWS: Final = 200_000
_PAGE_ROWS: Final = 10_000
_WARM: Final = 5
Line = dict[str, Any]


def cpu_seconds(work: Callable[[], Any], repeat: int) -> float:
    """The median processor time of this process for a run of the work, after one that is not counted."""
    found = []
    work()
    for _ in range(repeat):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return median(found)


def _definition(**settings: Any) -> DatasetDefinition:
    registered = definition("trips", buckets=None) | settings
    return define_dataset(msgspec.convert(registered, CreateDataset))


def _table(folder: Path, dataset: DatasetDefinition) -> tuple[LakeTable, TaskResources]:
    folder.mkdir(parents=True)
    storage = LocalStorage(folder)
    resources = TaskResources.on(storage, MemoryBudget(bytes_max=_MERGE_BYTES))
    return LakeTable(storage=storage, dataset=dataset, run=partial(merged, resources)), resources


def _upsert(numbers: np.ndarray, ts: int) -> Write:
    return Write(operation=Operation.UPSERT, rows=trips(numbers, ts=ts).to_pylist())


def merges(folder: Path, *, repeat: int) -> Iterator[Line]:
    """The merge task of a write of 100 rows, half of them new, into a small table, with the sync of its files."""
    for table_type in ("merge_on_read", "copy_on_write"):
        for rows in _SMALL_TABLES_ROWS:
            place = folder / f"{table_type}_{rows}"
            seconds = _merge_seconds(place, _definition(table_type=table_type), rows, repeat)
            yield _line(f"the merge of {_WRITE_ROWS} rows into {rows:,}, {table_type}", "write", seconds, 1)


def _merge_seconds(folder: Path, dataset: DatasetDefinition, rows: int, repeat: int) -> float:
    table, resources = _table(folder, dataset)
    table.write(_upsert(np.arange(rows), 1))
    random, found = np.random.default_rng(1), []
    half = _WRITE_ROWS // 2
    for number in range(repeat + _WARM):
        known = random.choice(rows, half, replace=False)
        write = _upsert(np.concatenate([known, np.arange(half) + rows + number * half]), 2 + number)
        tasks = table.plan(write)
        began = time.process_time()
        messages = merged(resources, tasks)
        found.append(time.process_time() - began)
        table.commit([write], messages)
    return median(found[_WARM:])


def reads(folder: Path, *, repeat: int) -> Iterator[Line]:
    """A merge_on_read table read as read jobs do, before and after an upsert has marked rows in its files."""
    table, resources = _table(
        folder / "read", _definition(bucket={"mode": "fixed", "count": 1}, target_bytes=2**22)
    )
    table.write(_upsert(np.arange(_READ_ROWS), 1))

    def read() -> int:
        found = rows_of(resources.slices, resources.memory, table.dataset, table.files.values())
        return sum(rows.num_rows for rows in found)

    yield _line(
        "read merge_on_read, no deletion vectors",
        f"{_READ_ROWS:,} rows",
        cpu_seconds(read, repeat),
        _READ_ROWS,
    )
    chosen = np.random.default_rng(1).choice(_READ_ROWS, _READ_ROWS // 10, replace=False)
    table.write(_upsert(chosen, 2))
    if read() != _READ_ROWS or not any(file.deletion_vector for file in table.files.values()):
        raise SystemExit("the upsert has not marked rows")
    yield _line(
        "read merge_on_read, a tenth of the rows marked",
        f"{_READ_ROWS:,} rows",
        cpu_seconds(read, repeat),
        _READ_ROWS,
    )


class _OneFile:
    """The feed that one changelog file is, in place of its rows in Postgres."""

    def __init__(self, segment: ChangelogSegment) -> None:
        self._segment = segment

    def bounds(self, *_: str) -> FeedBounds:
        """All of the file."""
        return FeedBounds(earliest=0, next_offset=self._segment.row_count)

    def segments(self, *_: Any, **__: Any) -> list[ChangelogSegment]:
        """The file."""
        return [self._segment]


def pages(folder: Path, *, repeat: int) -> Iterator[Line]:
    """A changelog file of 10,000 changes encoded, and served as one Arrow page while its footer is cached."""
    table, resources = _table(folder / "feed", _definition())
    table.write(_upsert(np.arange(_PAGE_ROWS), 1))
    table.write(_upsert(np.arange(_PAGE_ROWS // 2), 2))
    version, _, file = table.feed[-1]
    changes = pq.ParquetFile(folder / "feed" / file.path).read(use_threads=False)

    def encode() -> None:
        (folder / "encoded.parquet").unlink(missing_ok=True)
        with create_parquet(
            LocalStorage(folder),
            "encoded.parquet",
            changes.schema,
            row_group_rows=CHANGELOG_ROW_GROUP_ROWS,
        ) as sink:
            sink.write(changes)
            sink.finish()

    now = datetime.now(UTC)
    segment = ChangelogSegment(
        file=file, first_offset=0, version=version, committed_at=now, row_count=file.row_count
    )
    dataset = Dataset(
        id="d",
        tenant_id="t",
        definition=table.dataset,
        version=version,
        next_offset=file.row_count,
        created_at=now,
        committed_at=now,
    )
    # Neither the catalogue nor corrections are read.
    feed = ReadChanges(catalog=None, index=_OneFile(segment), reader=resources.slices.reader)  # type: ignore[arg-type]

    def page() -> int:
        found = feed.page(dataset, 0, FeedQuery(limit=_PAGE_ROWS))
        arrow_stream(flat(found.events.table, found.form, found.vocabulary).combine_chunks())
        return found.next_since

    if file.row_count != _PAGE_ROWS or page() != _PAGE_ROWS:
        raise SystemExit(f"a page of {file.row_count} changes instead of {_PAGE_ROWS}")
    per = f"{_PAGE_ROWS:,} changes"
    yield _line("encode a changelog file, and sync it", per, cpu_seconds(encode, repeat), _PAGE_ROWS)
    yield _line("an Arrow page from a cached file, without HTTP", per, cpu_seconds(page, repeat), _PAGE_ROWS)


def statements(scratch: Path, *, writes: int) -> Iterator[Line]:
    """What accepting a write costs, and claiming, planning and committing one: in this process, and in Postgres."""
    with (
        TemporaryDirectory(prefix="headwater-bench-", dir=scratch) as folder,
        EmbeddedPostgres(Path(folder)) as server,
    ):
        tenant_id = initialise(server.owner_url, application_url=server.url).tenant_id
        database = Database(server.url, application_name="headwater bench")
        try:
            table = Table.made(database, tenant_id, live=10, versions=10)
            with psycopg.connect(server.owner_url, autocommit=True) as connection:
                connection.execute("ANALYZE")
            for number in range(20):
                table.write(table.slots[number % 10], defaultdict(list))
            steps: dict[str, Callable[[int], None]] = {
                "accept a write": lambda _: table.accept(),
                "claim, plan and commit it": lambda number: table.run(
                    table.slots[number % 10], defaultdict(list)
                ),
            }
            for step, work in steps.items():
                before, own = _postgres_seconds(), time.process_time()
                for number in range(writes):
                    work(number)
                own, stored = time.process_time() - own, _postgres_seconds() - before
                found = _line(step, "write", (own + stored) / writes, 1)
                yield found | {"of it Postgres": round(1000 * stored / writes, 2)}
        finally:
            database.close()


def _postgres_seconds() -> float:
    started = psutil.Process().children()
    return processor_seconds([each for process in started for each in tree(process)])


def _line(step: str, per: str, seconds: float, rows: int) -> Line:
    return {"step": step, "per": per, "cpu ms": round(seconds * 1000, 2), "per s": round(rows / seconds)}
