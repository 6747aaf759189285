"""Writes to a table of the catalogue, run as a worker runs them, with whatever comes between two of their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa
from sqlalchemy import update

from app.core.catalog.tables import heads
from app.core.catalog.values import Dataset
from app.core.changes.repository import ChangelogStore
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.kinds.write import RestoreTarget, WriteRequest
from app.core.jobs.values import Job
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.repository.timeline import TimelineStore
from app.core.timeline.service.version_pins import VersionPins
from app.core.timeline.values import Fenced, NewCommit, Overtaken, Published
from app.features.versions.service.restores import StageEarlier
from app.features.views.repository.views import ViewStore
from app.features.views.service.refresh import DeriveView
from app.features.writes.service.run import RunWrites
from app.infra.db.deletion_hold import deletions_held
from app.infra.db.session import Database
from app.infra.files.checksums import HashingSink
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.kernel.commit.conflict import Conflicted
from app.kernel.commit.merge_bundle import MergeBundle
from app.kernel.commit.restore_plan import files_by_group
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.engine_task import EngineTask, Result
from app.kernel.format.operation import Operation
from app.kernel.format.paths import body_path, dataset_prefix, staged_path
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.meta_columns import META_NAMES
from app.kernel.format.rows.staged import RawInput, StagedFile
from app.process.features import COMMIT_PARTICIPANTS, stores_on
from tests.support.lakehouse import RULES, new_job
from tests.support.service import TasksInProcess

Row = dict[str, Any]
Event = Callable[[], None]
# Two groups of writes may run at once, so that one comes between the steps of the other.
_RULES: Final = msgspec.structs.replace(RULES, dataset_writers_max=2)


class Engine(TasksInProcess):
    """Runs tasks in this process. Each run of merge tasks is noted, after the next of the events before it."""

    def __init__(self, storage: LocalStorage) -> None:
        super().__init__(storage)
        self.before_merge: list[Event] = []
        self.merged: list[list[str]] = []

    def run(self, tasks: Sequence[EngineTask[Result]], tag: str) -> list[Result]:
        bundles = [task for task in tasks if isinstance(task, MergeBundle)]
        if len(bundles) == len(tasks):
            self.merged.append([task.file_group for bundle in bundles for task in bundle.tasks])
            if self.before_merge:
                self.before_merge.pop(0)()
        return super().run(tasks, tag)


class Timeline(TimelineStore):
    """The catalogue's timeline. `after_refusal`: what happens once a commit was refused. `planned_at`: versions."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, COMMIT_PARTICIPANTS)
        self.after_refusal: list[Event] = []
        self.planned_at: list[int] = []

    def publish(
        self, tenant_id: str, commits: Sequence[NewCommit]
    ) -> tuple[Published, ...] | Conflicted | Overtaken | Fenced:
        self.planned_at += [commit.read_version for commit in commits]
        outcome = super().publish(tenant_id, commits)
        if not isinstance(outcome, tuple) and self.after_refusal:
            self.after_refusal.pop(0)()
        return outcome


@dataclass(kw_only=True)
class Writing:
    """The writes of one dataset, and a worker for them."""

    database: Database
    storage: LocalStorage
    dataset: Dataset
    replans_max: int = 3
    seconds_max: float = 60
    write_seconds_max: float = 60
    announced: list[bool] = field(default_factory=list)
    handed_over: list[tuple[WriteProcess, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = Engine(self.storage)
        self.timeline = Timeline(self.database)
        stores = stores_on(self.database)
        self.jobs, self.catalog = stores.jobs, stores.catalog

    @property
    def tenant_id(self) -> str:
        return self.dataset.tenant_id

    def worker(self, **settings: Any) -> RunWrites:
        leases = ReadLeaseStore(self.database)
        pins = VersionPins(leases=leases, lease_seconds=60, heartbeat_seconds=60)
        refresh = DeriveView(
            views=ViewStore(self.database),
            timeline=self.timeline,
            index=ChangelogStore(self.database),
            pins=pins,
            engine=self.engine,
        )
        restore = StageEarlier(catalog=self.catalog, timeline=self.timeline, pins=pins, engine=self.engine)
        parts: dict[str, Any] = {
            "catalog": self.catalog,
            "storage": self.storage,
            "jobs": self.jobs,
            "timeline": self.timeline,
            "deletion_hold": partial(deletions_held, self.database),
            "kept_versions": leases,
            "engine": self.engine,
            "stagers": {JobKind.REFRESH: refresh, JobKind.RESTORE: restore, JobKind.ROLLBACK: restore},
            "announce": lambda: self.announced.append(True),
            "owner": "worker",
            "rules": _RULES,
            "heartbeat_seconds": 60,
            "replans_max": self.replans_max,
            "hand_over": lambda *next_write: self.handed_over.append(next_write),
            "after_round": lambda: None,
            "seconds_max": lambda _: self.seconds_max,
            "write_seconds_max": lambda _: self.write_seconds_max,
        }
        return RunWrites(**parts | settings)

    def run(self, **settings: Any) -> bool:
        """Claims and runs one group. Returns whether there was one."""
        before = len(self.announced)
        self.worker(**settings).run(self.tenant_id, self.dataset.id)
        return len(self.announced) > before

    def accept(self, request: WriteRequest) -> str:
        new = msgspec.structs.replace(new_job(self.dataset.id), request=request)
        return self.jobs.accept(self.tenant_id, new).job.id

    def send(self, rows: Sequence[Row], operation: Operation = Operation.UPSERT, **options: Any) -> str:
        """The id of the job of a write of rows, which are staged already."""
        return self.accept(
            WriteRequest(
                operation=operation,
                options=WriteOptions(**options),
                staged=self.staged(rows, operation),
            )
        )

    def staged(self, rows: Sequence[Row], operation: Operation) -> tuple[StagedFile, ...]:
        """The rows as the input of a write."""
        definition = self.catalog.get(self.tenant_id, self.dataset.id).definition
        fields = [entry.with_nullable(True) for entry in definition.schema.to_arrow()]
        path = staged_path(dataset_prefix(self.tenant_id, self.dataset.id), new_id())
        table = pa.Table.from_pylist(list(rows), schema=pa.schema(fields))
        store = StagedFileStore(self.storage, inline_bytes_max=64 * 1024)
        staged = store.stage(definition, operation, table, path)
        return () if staged is None else (staged,)

    def send_raw(self, body: bytes, **options: Any) -> str:
        """The id of the job of an upsert of NDJSON that the worker decodes."""
        path = body_path(dataset_prefix(self.tenant_id, self.dataset.id), new_id())
        with self.storage.create(path) as file:
            sink = HashingSink(file)
            sink.write(body)
        raw = RawInput(path=path, size_bytes=sink.size_bytes, checksum=sink.checksum, format=Format.NDJSON)
        return self.accept(WriteRequest(operation=Operation.UPSERT, options=WriteOptions(**options), raw=raw))

    def send_restore(self, version: int) -> str:
        """The id of the job of a restore."""
        return self.accept(
            WriteRequest(operation=Operation.SNAPSHOT, restores=RestoreTarget(version=version))
        )

    def write(self, rows: Sequence[Row], operation: Operation = Operation.UPSERT, **options: Any) -> None:
        """Commits a write of rows by another worker."""
        job_id = self.send(rows, operation, **options)
        assert self.run(owner="another")
        assert self.job(job_id).state.value == "succeeded"

    def expire_versions(self) -> None:
        """Lets the history begin at the head."""
        head = self.version
        with self.database.tenant(self.tenant_id) as connection:
            connection.execute(
                update(heads).where(heads.c.dataset_id == self.dataset.id).values(earliest_version=head)
            )

    def job(self, job_id: str) -> Job:
        return self.jobs.get(self.tenant_id, job_id)

    def ended(self, job_id: str) -> tuple[str, str | None]:
        """The state of a job, and the code of its error."""
        job = self.job(job_id)
        return job.state.value, None if job.error is None else job.error.code

    @property
    def version(self) -> int:
        return self.catalog.get(self.tenant_id, self.dataset.id).version

    def rows(self) -> list[Row]:
        """The live rows, sorted."""
        definition = self.catalog.get(self.tenant_id, self.dataset.id).definition
        files = self.timeline.live_files(self.tenant_id, self.dataset.id, self.version, None)
        slices = SliceReader(ParquetReader(self.storage), VectorReader(self.storage))
        found: list[Row] = []
        for group in files_by_group(files).values():
            for block in merged_blocks(slices, definition, group, MemoryBudget(bytes_max=2**26)):
                found += block.rows.drop_columns(list(META_NAMES)).to_pylist()
        return sorted(found, key=repr)
