"""Read jobs of tables without a service: accepted, run and read as users do, by the tasks that Spark runs."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from app.core.catalog.values import Dataset
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.declared import JobRequest
from app.core.jobs.kinds.read import Disposition, ReadQuery, ReadResult
from app.core.jobs.service.request_job import RequestIdentity
from app.core.jobs.values import Accepted, Job, JobState, Progress
from app.core.timeline.service.version_pins import VersionPins
from app.features.exports.service.destinations import Destinations
from app.features.reads.content import JoinedContent
from app.features.reads.jobs import CreateRead, FinishedRead
from app.features.reads.service.jobs import ReadJobs
from app.features.reads.service.run import RunReads
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.kernel.format.file_format import FileFormat
from app.kernel.format.instant import RowCounts
from app.kernel.format.result_file import RunFile
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.support.engine import EngineInProcess
from tests.support.retained_versions import RetainedVersions, versions_of
from tests.support.table_feed import TableFeed, later_corrections_of
from tests.support.versioned_tables import VersionedTable, committed_at
from workers.engine.task_files import TaskResources

Row = dict[str, Any]


@dataclass(kw_only=True)
class Outcome:
    """The result of a read job."""

    job: Job
    result: ReadResult
    files: list[RunFile]
    content: bytes

    @property
    def rows(self) -> list[Row]:
        """The rows of the content, values as in JSON."""
        return rows_of(self.result.format, self.content)


def rows_of(format_: FileFormat, content: bytes) -> list[Row]:
    """The rows of a result in one content: integers and strings, or null."""
    match format_:
        case FileFormat.JSON:
            return list(json.loads(content)["rows"])
        case FileFormat.NDJSON:
            return [json.loads(line) for line in content.splitlines()]
        case FileFormat.ARROW:
            return ipc.open_stream(content).read_all().to_pylist()
        case FileFormat.PARQUET:
            return pq.read_table(io.BytesIO(content)).to_pylist()
        case FileFormat.CSV:
            options = pacsv.ConvertOptions(
                column_types={"day": pa.string(), "note": pa.string()},
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            return pacsv.read_csv(io.BytesIO(content), convert_options=options).to_pylist()


@dataclass(kw_only=True)
class Reads:
    """The read jobs of a table with a past. `earliest`: where its feed was cut. `spark`: what runs tasks, if not we."""

    versioned: VersionedTable
    storage: LocalStorage
    root: Path
    memory_bytes: int = 2**26
    earliest: int = 0
    inline_bytes_max: int = 2**20
    kept: RetainedVersions = field(default_factory=RetainedVersions)
    finished: FinishedRead | None = None
    spark: Engine | None = None
    access: RowAccess = EVERYTHING

    def __post_init__(self) -> None:
        resources = TaskResources.on(
            self.storage, MemoryBudget(bytes_max=self.memory_bytes, scratch=self.root)
        )
        self.engine = EngineInProcess(resources=resources)

    def read(self, query: ReadQuery = ReadQuery.SNAPSHOT, **options: Any) -> Outcome:
        """Starts a job and runs it."""
        wanted = {"format": FileFormat.NDJSON, "disposition": Disposition.INLINE, **options}
        return self.run(self.start(CreateRead(query=query, **wanted)))

    def start(self, new: CreateRead) -> Job:
        """The job that is accepted."""
        return self._jobs.start(self._feed.dataset, new, self.access, None, None).job

    def run(self, job: Job) -> Outcome:
        """The result of a job."""
        version_pins = VersionPins(leases=self.kept, lease_seconds=60, heartbeat_seconds=15)
        runner = RunReads(
            catalog=self._feed,  # type: ignore[arg-type]
            timeline=self.versioned,  # type: ignore[arg-type]
            index=self._feed,
            later=later_corrections_of(self.versioned),
            pins=version_pins,
            results=self,
            storage=self.storage,
            engine=self.spark or self.engine,
            roots_of=lambda tenant_id: (),
            inline_bytes_max=self.inline_bytes_max,
        )
        runner.run(job, job.request, f"{job.id}-{job.epoch}")
        assert self.finished is not None
        ended = msgspec.structs.replace(job, state=JobState.SUCCEEDED, result=self.finished.result)
        result, files = self._jobs.result(ended)
        content = b"".join(self._jobs.joined(result, files)) if result.inline else b""
        return Outcome(job=job, result=result, files=files, content=content)

    @property
    def _feed(self) -> TableFeed:
        return TableFeed(table=self.versioned.table, earliest=self.earliest)

    @property
    def _jobs(self) -> ReadJobs:
        return ReadJobs(
            requests=self,  # type: ignore[arg-type]
            timeline=self.versioned,  # type: ignore[arg-type]
            versions=versions_of(self.versioned, self.kept),
            index=self._feed,
            results=self,
            content=JoinedContent(self.storage),
            storage=self.storage,
            destinations=Destinations(storage_uri="", roots_of=lambda tenant_id: ()),
            keep_seconds=60,
        )

    # What the store does

    def replayed(self, dataset: Dataset, identity: RequestIdentity) -> Accepted | None:
        return None

    def accept(
        self, dataset: Dataset, request: JobRequest, identity: RequestIdentity, *, job_id: str | None = None
    ) -> Accepted:
        job = Job(
            id=new_id(), tenant_id=dataset.tenant_id, dataset_id=dataset.id,
            dataset_name=dataset.definition.name, instant_id=None,
            kind=request.kind, state=JobState.RUNNING, request=request,
            progress=Progress(stage="read"), attempts=1, epoch=1, committed_version=None, first_offset=None,
            last_offset=None, rows=RowCounts(), error=None, created_at=committed_at(0), started_at=None,
            finished_at=None, transaction_id=None,
        )  # fmt: skip
        return Accepted(job=job, is_replay=False)

    def finish(self, tenant_id: str, finished: FinishedRead) -> bool:
        self.finished = finished
        return True

    def files(self, tenant_id: str, job_id: str, *, keep_seconds: float) -> list[RunFile]:
        assert self.finished is not None
        return list(self.finished.files)
