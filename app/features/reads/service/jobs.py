"""Accepts read jobs, with the version to read determined, and serves their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
import pyarrow as pa

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.changes.errors import NoFeed
from app.core.changes.repository import ChangelogStore
from app.core.changes.service.read_corrections import check_records_corrections
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.read import Disposition, ReadQuery, ReadResult, ReadTask
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted, Job, JobState
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.accept_pinned import AcceptPinned
from app.core.timeline.service.version_definition import definition_at
from app.features.exports.service.destinations import Destinations
from app.features.exports.tasks import reads_feed
from app.features.reads.content import JoinedContent
from app.features.reads.errors import JobNotFinished, NoCommits
from app.features.reads.jobs import CreateRead, ReadResults
from app.features.versions.service.versions import VersionOf
from app.infra.files.errors import CorruptFile
from app.infra.files.ports import ObjectStorage
from app.kernel.changelog.change_selection import check_feed_access
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import FieldError, InvalidRequest, ReportedError
from app.kernel.format.result_file import RunFile
from app.kernel.format.rows.projection import check_partitions, projection
from app.kernel.sql.conditions.bound_access import bind_access
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.row_access import RowAccess
from app.kernel.sql.read_order import check_order

_OF_VERSIONS: Final = ("version", "as_of", "tag")
_OF_RANGES: Final = ("begin", "begin_time", "end", "end_time")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadJobs:
    """Accepts read jobs, and serves their results, which are kept for `keep_seconds`."""

    requests: RequestJob
    timeline: VersionReader
    versions: VersionOf
    index: ChangelogStore
    results: ReadResults
    content: JoinedContent
    storage: ObjectStorage
    destinations: Destinations
    keep_seconds: float

    def start(
        self,
        dataset: Dataset,
        new: CreateRead,
        access: RowAccess,
        idempotency_key: str | None,
        actor: str | None,
    ) -> Accepted:
        """A job that reads what the access shows of a version or a range of versions, which are determined now.

        Raises InvalidRequest, InvalidFilter, NotFound, VersionExpired, NoCommits, NoFeed, OffsetExpired,
        IdempotencyMismatch, MaskedColumn, GrantNotApplicable, RestrictedGrant.
        """
        text = msgspec.json.encode(new).decode()
        identity = RequestIdentity(
            # The request itself: a retry reads the version that the first try determined.
            text=f"{text} {msgspec.json.encode(access).decode()}" if access.restricted else text,
            idempotency_key=idempotency_key,
            actor=actor,
        )
        earlier_job = self.requests.replayed(dataset, identity)
        if earlier_job is not None:
            return earlier_job
        task = self._task(dataset, new, access)
        acceptor = AcceptPinned(requests=self.requests, leases=self.versions.leases)
        if task.begin is not None and reads_feed(dataset.definition) and not task.with_sources:
            return acceptor.accept_changes(dataset, task.begin, task, identity)
        return acceptor.accept(dataset, task.version, task, identity, feed=task.corrected_since)

    def _task(self, dataset: Dataset, new: CreateRead, access: RowAccess) -> ReadTask:
        incremental = new.query is ReadQuery.INCREMENTAL
        _refuse(new, _OF_VERSIONS if incremental else _OF_RANGES)
        if new.corrected_since:
            check_records_corrections(dataset)
        if incremental:
            begin, version = self._range(dataset, new)
        else:
            begin = None
            version = self.versions.find(dataset, version=new.version, as_of=new.as_of, tag=new.tag)
        self._check(dataset, new, access, None if incremental else version)
        destination = None if isinstance(new.destination, msgspec.UnsetType) else new.destination
        if destination is not None:
            self.destinations.check(dataset.tenant_id, destination)
        return ReadTask(
            query=new.query,
            version=version,
            begin=begin,
            format=new.format.value,
            disposition=new.disposition,
            columns=new.columns,
            where=new.where,
            partitions=new.partitions,
            order_by=new.order_by,
            limit=new.limit,
            meta=new.meta,
            corrected_since=new.corrected_since,
            access=access,
            destination=destination,
        )

    def result(self, job: Job) -> tuple[ReadResult, list[RunFile]]:
        """The result of a read job. Raises the error that the job failed with.

        Raises NotFound for a job of another kind, and if the dataset is gone; JobNotFinished, ResultExpired.
        """
        if job.kind is not JobKind.READ:
            raise NotFound(
                f"job {job.id} is a {job.kind.value}: only read jobs have this resource; the result of others is in "
                "the job"
            )
        if job.state is JobState.FAILED and job.error is not None:
            raise ReportedError(job.error)
        if job.state is not JobState.SUCCEEDED or job.result is None:
            raise JobNotFinished(
                f"the job is {job.state.value}; wait for it to succeed", state=job.state.value
            )
        files = self.results.files(job.tenant_id, job.id, keep_seconds=self.keep_seconds)
        return msgspec.convert(job.result, ReadResult), files

    def file(self, job: Job, name: str) -> RunFile:
        """A file of a result, once its size is found to be the recorded one.

        Raises CorruptFile, and what `result` does.
        """
        _, files = self.result(job)
        for file in files:
            if file.name == name:
                self._check_file(file)
                return file
        raise NotFound(f"the result has no file {name!r}")

    def _check_file(self, file: RunFile) -> None:
        size = self.storage.size(file.path)
        if size != file.size_bytes:
            raise CorruptFile(
                f"{file.path} has {size} bytes; its job recorded {file.size_bytes}", path=file.path
            )

    def open(self, file: RunFile) -> pa.NativeFile:
        """The bytes of a file. Raises CorruptFile."""
        return self.storage.open(file.path)

    def joined(self, result: ReadResult, files: Sequence[RunFile]) -> Iterator[bytes]:
        """A result as one content, in parts; JSON includes the version and the schema. Raises CorruptFile."""
        # Before the first byte is sent: after it, the status of the response is final.
        for file in files:
            self._check_file(file)
        about = {
            "disposition": Disposition.INLINE,
            "version": result.version,
            "begin": result.begin,
            "schema": result.schema,
        }
        of_commits = {name: getattr(result, name) for name in ("corrected", "commits", "commits_truncated")}
        about |= {name: value for name, value in of_commits.items() if value is not msgspec.UNSET}
        schema = result.schema.as_schema().to_arrow()
        return self.content.joined(result.format, schema, files, msgspec.json.encode(about)[1:-1])

    def _range(self, dataset: Dataset, new: CreateRead) -> tuple[int, int]:
        """Two versions: changes after the first and up to the second count."""
        if new.begin is None and new.begin_time is None:
            detail = (
                "an incremental read needs begin, the version after which changes count (0: all of them), "
                "or begin_time"
            )
            raise InvalidRequest(detail, [FieldError(pointer="/begin", detail=detail)])
        if dataset.definition.changelog.producer is ChangelogProducer.NONE:
            raise NoFeed("an incremental read needs a feed, and changelog.producer of the dataset is 'none'")
        if dataset.version == 0:
            raise NoCommits("the dataset has no commits yet, so nothing has changed in it: write to it first")
        begin = self._bound(dataset, "begin", new.begin, new.begin_time)
        end = self._bound(dataset, "end", new.end, new.end_time)
        if begin > end:
            detail = f"expected at most {end}, the end of the range"
            raise InvalidRequest(
                f"the range begins after its end: begin is version {begin}, end is version {end}",
                [FieldError(pointer="/begin", detail=detail)],
            )
        if reads_feed(dataset.definition) and not (new.meta or new.corrected_since):
            position = self.timeline.next_offset(dataset.tenant_id, dataset.id, begin)
            self.index.bounds(dataset.tenant_id, dataset.id).checked(position)
        else:
            self.versions.check(dataset, end)
        return begin, end

    def _bound(self, dataset: Dataset, name: str, version: int | None, time: datetime | None) -> int:
        if version is not None and time is not None:
            raise InvalidRequest(
                f"give {name} or {name}_time, not both",
                [FieldError(pointer=f"/{name}_time", detail="omit it")],
            )
        if time is not None:
            # Not one that was committed since the dataset was read.
            return min(self.timeline.version_at(dataset.tenant_id, dataset.id, time), dataset.version)
        if version is None:
            return dataset.version
        if version > dataset.version:
            detail = f"expected 0–{dataset.version}, the dataset's version"
            raise InvalidRequest(
                f"{name}: there is no version {version}",
                [FieldError(pointer=f"/{name}", detail=detail)],
                head=dataset.version,
            )
        return version

    def _check(self, dataset: Dataset, new: CreateRead, access: RowAccess, version: int | None) -> None:
        """Checks columns, filter and order against the schema of a version; None for the latest.

        Raises InvalidRequest, InvalidFilter, MaskedColumn, GrantNotApplicable, RestrictedGrant.
        """
        definition = dataset.definition
        if version is not None:
            definition = definition_at(self.timeline, dataset, version)
        projection(definition.schema, new.columns)
        check_partitions(definition, new.partitions)
        check_order(definition.schema, new.order_by)
        where = None if new.where is None else parse_filter(new.where, definition.schema)
        bound = bind_access(access, dataset.definition.schema, definition.schema)
        bound.selecting(where)
        bound.check_partitions(definition, new.partitions)
        bound.refuse_masked([each.column for each in new.order_by], "order_by")
        if new.query is ReadQuery.INCREMENTAL:
            check_feed_access(definition, access)


def _refuse(new: CreateRead, names: tuple[str, ...]) -> None:
    """Raises InvalidRequest for members that this query does not have."""
    members = [name for name in names if getattr(new, name) is not None]
    if not members:
        return
    incremental = new.query is ReadQuery.INCREMENTAL
    use = "begin and end" if incremental else "version, as_of or tag"
    detail = f"not for the query {new.query.value}; use {use}"
    raise InvalidRequest(
        f"{members[0]}: {detail}", [FieldError(pointer=f"/{name}", detail=detail) for name in members]
    )
