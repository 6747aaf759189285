"""What planning and committing a write cost as a table grows: in files, in versions, and in instants.

There is no engine here and no file: a table's rows in Postgres are made, then writes of one row are accepted, claimed,
planned and committed through the stores that the service uses, one after another. Each reads its file group again.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
from sqlalchemy import insert

from app.access.tenants.bootstrap import initialise
from app.core.catalog.tables import heads
from app.core.catalog.values import Dataset
from app.core.feature.stagers import StagedInput
from app.core.jobs.tables import instants
from app.core.jobs.values import ClaimRules, NewJob, WriteRequest
from app.core.timeline.tables import commits, files
from app.features.writes.attempt import Decoded, Merged, Planned
from app.features.writes.service.plan import PlanWrites
from app.infra.db.session import Database
from app.infra.runtime.postgres import EmbeddedPostgres
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import ChangelogFile, DataFile, Slot, bucket_file_group
from app.kernel.format.identifiers import new_id, new_instant_id
from app.kernel.format.instant import Action, InstantState, RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import StagedBatch, StagedFile
from app.process.features import Stores, stores_on
from bench.options import parser
from bench.report import percentiles, publish

_BUCKETS: Final = 100
_RULES: Final = ClaimRules(lease_seconds=60, group_jobs_max=1, dataset_writers_max=1, attempts_max=3)
_AT_ONCE: Final = 2_000
# Live files, and versions: each of these has an instant.
_TABLES: Final = ((10, 10), (1_000, 10), (100_000, 10), (1_000, 1_000), (1_000, 10_000))
# Writes of each table that are not measured.
_WARM: Final = 20
_STEPS: Final = ("accept", "claim", "plan", "commit")
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table whose files are rows in Postgres only."""

    database: Database
    stores: Stores
    dataset: Dataset
    slots: Sequence[Slot]

    @classmethod
    def made(cls, database: Database, tenant_id: str, *, live: int, versions: int) -> Table:
        """One with this number of live files, one in each file group, and this number of versions.

        Each version but the first has replaced a file, so that as many are removed.
        """
        stores = stores_on(database)
        catalog = stores.catalog
        dataset = catalog.create(tenant_id, new_id(), _definition(live, versions))
        slots = [
            Slot(partition_path=f"day={number // _BUCKETS:04}", bucket=number % _BUCKETS)
            for number in range(live)
        ]
        with database.tenant(tenant_id) as connection:
            place = {"dataset_id": dataset.id}
            for table, rows in (
                (commits, _commit_rows(versions)),
                (instants, _instant_rows(versions)),
                (files, _file_rows(slots, versions)),
            ):
                for some in _batches(rows):
                    connection.execute(insert(table), [place | row for row in some])
            connection.execute(
                heads.update()
                .where(heads.c.dataset_id == dataset.id)
                .values(version=versions, next_offset=versions)
            )
        made = catalog.get(tenant_id, dataset.id)
        return cls(database=database, stores=stores, dataset=made, slots=slots)

    def write(self, slot: Slot, seconds: Mapping[str, list[float]]) -> None:
        """An upsert of one row into the slot's file, in its steps."""
        with timed(seconds["accept"]):
            self.accept()
        self.run(slot, seconds)

    def accept(self) -> None:
        """Accepts a write."""
        self.stores.jobs.accept(self.dataset.tenant_id, _new_job(self.dataset))

    def run(self, slot: Slot, seconds: Mapping[str, list[float]]) -> None:
        """Claims, plans and commits the earliest write, into the slot's file."""
        tenant_id = self.dataset.tenant_id
        jobs, timeline = self.stores.jobs, self.stores.timeline
        with timed(seconds["claim"]):
            [job] = jobs.claim(tenant_id, self.dataset.id, "bench", _RULES)
        made = StagedInput(job=job, staged=(_staged(slot),))
        decoded = Decoded(dataset_id=self.dataset.id, inputs=(made,))
        with timed(seconds["plan"]):
            plan = PlanWrites(catalog=self.stores.catalog, timeline=timeline)
            planned = plan.run(tenant_id, decoded, new_instant_id())
        if not isinstance(planned, Planned):
            raise SystemExit(f"a plan that conflicted: {planned}")
        [[old]] = [task.files for task in planned.tasks]
        merged = planned.merged([_message(slot, old)])
        if not isinstance(merged, Merged):
            raise SystemExit(f"a merge without a duplicate: {merged}")
        with timed(seconds["commit"]):
            outcome = timeline.publish(tenant_id, [merged.commit()])
        if not isinstance(outcome, tuple):
            raise SystemExit(f"a commit that conflicted: {outcome}")


@contextmanager
def timed(seconds: list[float]) -> Iterator[None]:
    """Adds how long the context took."""
    begun = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - begun)


def _definition(live: int, versions: int) -> Any:
    fields = [CreateField(name="day", type="string"), CreateField(name="id", type="int64")]
    new = CreateDataset(
        name=f"files_{live}_versions_{versions}",
        schema=CreateSchema(fields=fields),
        record_key=["day", "id"],
        partition_by=["day"],
        bucket=CreateBucket(count=_BUCKETS),
    )
    return define_dataset(new)


def _new_job(dataset: Dataset) -> NewJob:
    request = WriteRequest(operation=Operation.UPSERT)
    return NewJob(id=new_id(), instant_id=new_instant_id(), dataset_id=dataset.id, request=request)


def _staged(slot: Slot) -> StagedFile:
    batch = StagedBatch(slot=slot, index=0, rows=1)
    return StagedFile(path=f"staged/{new_id()}", size_bytes=1, checksum="", rows=1, batches=(batch,))


def _message(slot: Slot, old: DataFile) -> CommitMessage:
    """The message of a task that has rewritten the file."""
    new = msgspec.structs.replace(old, path=f"data/{new_id()}", written_version=None, first_offset=None)
    changelog = ChangelogFile(
        path=f"changes/{new_id()}",
        size_bytes=1,
        checksum="",
        row_count=1,
        schema_id=1,
        file_group=old.file_group,
    )
    return CommitMessage(
        file_group=bucket_file_group(slot),
        removed=(old.path,),
        added=(new,),
        changelog=(changelog,),
        counts={0: RowCounts(inserted=1)},
    )


def _commit_rows(versions: int) -> Iterator[Row]:
    begun = time.time() - versions
    for version in range(1, versions + 1):
        yield {
            "version": version, "action": Action.COMMIT.value, "instant_id": _instant(version),
            "committed_at": _moment(begun + version), "first_offset": version - 1, "next_offset": version,
            "schema_id": 1, "files_added": 1, "files_removed": 1, "bytes_added": 1, "counts": RowCounts(),
        }  # fmt: skip


def _instant_rows(versions: int) -> Iterator[Row]:
    for version in range(1, versions + 1):
        yield {
            "id": _instant(version), "action": Action.COMMIT.value, "operation": "upsert",
            "state": InstantState.COMPLETED.value, "version": version, "counts": RowCounts(),
        }  # fmt: skip


def _file_rows(slots: Sequence[Slot], versions: int) -> Iterator[Row]:
    """Of each slot, in turn, a file for each version that wrote it: the last of them is live."""
    written = dict.fromkeys(range(len(slots)), 1)
    for version in range(2, versions + 1):
        number = version % len(slots)
        yield _file_row(slots[number], written[number], version)
        written[number] = version
    for number, added in written.items():
        yield _file_row(slots[number], added, None)


def _file_row(slot: Slot, added: int, removed: int | None) -> Row:
    return {
        "path": f"data/{new_id()}", "file_group": bucket_file_group(slot), "partition_path": slot.partition_path,
        "bucket": slot.bucket, "added_version": added, "removed_version": removed, "size_bytes": 1_000_000,
        "row_count": 10_000, "checksum": "", "schema_id": 1, "statistics": {}, "written_version": added,
        "first_offset": added - 1,
    }  # fmt: skip


def _instant(version: int) -> str:
    return f"{version:020}-000000"


def _moment(seconds: float) -> Any:
    return psycopg.TimestampFromTicks(seconds)


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    some: list[Row] = []
    for row in rows:
        some.append(row)
        if len(some) == _AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def measured(tables: Sequence[Table], writes: int) -> list[Row]:
    """The lines of the report. Tables take turns, so that a busy machine is as busy for one as for the others."""
    chance = random.Random(1)
    seconds: list[dict[str, list[float]]] = [defaultdict(list) for _ in tables]
    for number in range(writes + _WARM):
        for table, found in zip(tables, seconds, strict=True):
            table.write(chance.choice(table.slots), found if number >= _WARM else defaultdict(list))
    return [_line(table, found) for table, found in zip(tables, seconds, strict=True)]


def _line(table: Table, seconds: Mapping[str, list[float]]) -> Row:
    dataset = table.dataset
    version = table.stores.catalog.get(dataset.tenant_id, dataset.id).version
    whole: list[float] = []
    with timed(whole):
        table.stores.timeline.live_files(dataset.tenant_id, dataset.id, version, None)
    found: Row = {"files": len(table.slots), "versions": dataset.version}
    for step in _STEPS:
        figures = percentiles(seconds[step])
        found |= {f"{step} ms": figures["p50"], f"{step} p95": figures["p95"]}
    return found | {"all files ms": round(whole[0] * 1000, 1)}


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--writes", type=int, default=200, help="writes measured of each table")
    chosen = options.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=chosen.scratch) as folder,
        EmbeddedPostgres(Path(folder)) as postgres,
    ):
        tenant_id = initialise(postgres.owner_url, application_url=postgres.url).tenant_id
        database = Database(postgres.url, application_name="headwater bench")
        try:
            tables = [Table.made(database, tenant_id, live=live, versions=made) for live, made in _TABLES]
            # What autovacuum does of itself, a little later.
            with psycopg.connect(postgres.owner_url, autocommit=True) as connection:
                connection.execute("ANALYZE")
            figures = measured(tables, chosen.writes)
        finally:
            database.close()
    publish("planning", {"writes": chosen.writes}, figures)


if __name__ == "__main__":
    main()
