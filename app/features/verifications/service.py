"""Requests for verifications, and their runs in the worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.repository import ChangelogStore
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.verification import VERIFICATION, VerifyResult, VerifyTask
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted, Job
from app.core.timeline.ports import VersionReader
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.service.version_definition import definition_at
from app.core.timeline.service.version_pins import VersionPins
from app.infra.files.errors import CorruptFile
from app.kernel.changelog.verification import FoldVerdict, check_verifiable, plan_fold
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import FieldError, InvalidRequest, NotVerifiable
from app.kernel.format.file_group import ChangelogSegment, DataFile, StoredFile
from app.kernel.format.schema.schema import Schema


@dataclass(frozen=True, kw_only=True, slots=True)
class Verifications:
    """Accepts verifications."""

    request_job: RequestJob

    def start(
        self,
        dataset: Dataset,
        version: int | None,
        idempotency_key: str | None,
        actor: str | None,
    ) -> Accepted:
        """A job that compares the table at a version (None: the latest when it runs) with its feed.

        Raises InvalidRequest, NotVerifiable, IdempotencyMismatch, NotFound.
        """
        check_verifiable(dataset.definition)
        if version is not None and not 0 <= version <= dataset.version:
            raise InvalidRequest(
                f"there is no version {version}",
                [
                    FieldError(
                        pointer="/version", detail=f"expected 0–{dataset.version}, the dataset's version"
                    )
                ],
                head=dataset.version,
            )
        task = VerifyTask(version=version)
        text = msgspec.json.encode(task).decode()
        return self.request_job.accept(
            dataset, task, RequestIdentity(text=text, idempotency_key=idempotency_key, actor=actor)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunVerify:
    """Runs the tasks of verifications. A difference does not fail the job: it is in its result."""

    catalog: DatasetLookup
    jobs: JobStore
    timeline: VersionReader
    index: ChangelogStore
    leases: ReadLeaseStore
    pins: VersionPins
    engine: Engine

    def run(self, job: Job, task: VerifyTask, tag: str) -> None:
        """Raises NotVerifiable, VersionExpired, NotFound, CorruptFile, StorageFull, EngineStopped."""
        dataset = self.catalog.get(job.tenant_id, job.dataset_id)
        version = dataset.version if task.version is None else task.version
        with self.pins.pin(dataset.tenant_id, [(dataset.id, version)], tag):
            feed = self._feed(dataset, version)
            start = [(dataset.id, feed.from_version)] if feed.from_version else []
            with self.pins.pin(dataset.tenant_id, start, f"{tag}-start"):
                verdict = self._verdict(dataset, version, feed, tag)
        self.jobs.succeed(job.tenant_id, job.claim, VERIFICATION.stored(_result(verdict, feed, version)))

    def _verdict(self, dataset: Dataset, version: int, feed: _Feed, tag: str) -> FoldVerdict:
        start = self._files(dataset, feed.from_version) if feed.from_version else []
        files = self._files(dataset, version)
        definition = definition_at(self.timeline, dataset, version)
        all_files = [*start, *files, *(segment.file for segment in feed.segments)]
        tasks = plan_fold(
            definition, start, files, feed.segments, self._schemas(dataset, definition, all_files)
        )
        return sum(self.engine.run(tasks, tag), FoldVerdict())

    def _feed(self, dataset: Dataset, version: int) -> _Feed:
        """The changes up to the version that are kept, and the earliest version that they can be applied to.

        Raises NotVerifiable, CorruptFile.
        """
        bounds = self.index.bounds(dataset.tenant_id, dataset.id)
        segments = self.index.segments(dataset.tenant_id, dataset.id, bounds.earliest, bounds.next_offset)
        cut = 0
        if bounds.earliest:
            # The feed is only cut between commits.
            cut = segments[0].version - 1 if segments else dataset.version
        if version < cut:
            raise NotVerifiable(
                f"the changes up to version {version} are no longer kept: the feed begins after version {cut}",
                from_version=cut,
            )
        start, first_offset = cut, bounds.earliest
        if cut:
            start = self.leases.first_kept(dataset.tenant_id, dataset.id, cut)
        if start > cut:
            first_offset = self.timeline.next_offset(dataset.tenant_id, dataset.id, start)
        feed = _Feed(
            first_offset=first_offset,
            from_version=start,
            segments=[segment for segment in segments if start < segment.version <= version],
        )
        feed.check_dense()
        return feed

    def _files(self, dataset: Dataset, version: int) -> list[DataFile]:
        return self.timeline.live_files(dataset.tenant_id, dataset.id, version, None)

    def _schemas(
        self, dataset: Dataset, definition: DatasetDefinition, files: Sequence[StoredFile]
    ) -> dict[int, Schema]:
        """The schemas under which the files were written, of those that the dataset had by then."""
        schema_ids = {file.schema_id for file in files}
        numbers = [number for number in schema_ids if 1 <= number <= definition.schema.id]
        return {
            number: self.catalog.schema(dataset.tenant_id, dataset.id, number).schema for number in numbers
        }


class _Feed(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to apply, in order, to the rows at `from_version`."""

    first_offset: int
    from_version: int
    segments: list[ChangelogSegment]

    @property
    def next_offset(self) -> int:
        """The offset after the last of them."""
        return self.segments[-1].end_offset if self.segments else self.first_offset

    def check_dense(self) -> None:
        """Raises CorruptFile if offsets are missing or occur twice."""
        offset = self.first_offset
        for segment in self.segments:
            if segment.first_offset != offset:
                path = segment.file.path
                raise CorruptFile(
                    f"{path} begins at offset {segment.first_offset} of the feed, the file before it ends at {offset}",
                    path=path,
                )
            offset = segment.end_offset


def _result(verdict: FoldVerdict, feed: _Feed, version: int) -> VerifyResult:
    return VerifyResult(
        version=version,
        from_version=feed.from_version,
        equal=verdict.differences == 0,
        rows=verdict.rows,
        changes=verdict.changes,
        first_offset=feed.first_offset,
        next_offset=feed.next_offset,
        differences=verdict.differences,
        first_difference=verdict.first,
    )
