"""Runs read jobs: writes the rows of a version, or those that changed, to files, and publishes these together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Final

import msgspec

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.repository import ChangelogStore
from app.core.changes.service.read_corrections import corrections_since
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.read import READ, Disposition, ReadQuery, ReadResult, ReadSchema, ReadTask
from app.core.jobs.values import Job
from app.core.timeline.ports import VersionRows
from app.core.timeline.service.live_groups import LiveGroups
from app.core.timeline.service.read_commit_times import commit_times_to
from app.core.timeline.service.version_definition import definition_at
from app.core.timeline.service.version_pins import VersionPins
from app.features.exports.manifests import write_manifest
from app.features.exports.tasks import (
    ExportFormat,
    ExportQuery,
    ExportSpec,
    PublishTask,
    changed_row_parts,
    export_parts,
    reads_feed,
)
from app.features.exports.values import MANIFEST_NAME
from app.features.reads.jobs import FinishedRead, ReadResults
from app.features.reads.service.later_corrections import LaterCorrections
from app.features.reads.tasks import (
    ChangedRows,
    ReadPart,
    ReadPartResult,
    ReadSource,
    ReadSpec,
    range_parts,
    read_parts,
    shortened,
    table_sources,
)
from app.features.reads.values import ReadManifest, ReadManifestFile
from app.infra.files.ports import ObjectStorage
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.codecs.meta_on_read import CORRECTED_RESULT_FIELDS, META_RESULT_FIELDS
from app.kernel.commit.read_plan import plan_read
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.settings import DEFAULT_TARGET_BYTES
from app.kernel.format.file_format import FileFormat
from app.kernel.format.file_group import FileKind
from app.kernel.format.paths import dataset_prefix, read_folder
from app.kernel.format.result_file import ExportedFile, RunFile
from app.kernel.format.rows.projection import projection
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.bound_access import bind_access
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.read_order import cut_ranges

# How much one task sorts of rows that do not fit into the memory of one; about the size of such a result file.
_RANGE_BYTES: Final = 64 * 1024 * 1024
# With a limit, tasks are started in waves, each this many times as large as the one before.
_WAVE: Final = 4
# The metadata of commits is a part of the job, which every request for it returns.
_METADATA_BYTES_MAX: Final = 16 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class RunReads:
    """Runs read jobs. A result of more than `inline_bytes_max` bytes is always served as files.

    `roots_of`: the folders below which a tenant, by its id, may have destinations.
    """

    catalog: DatasetLookup
    timeline: VersionRows
    index: ChangelogStore
    later: LaterCorrections
    pins: VersionPins
    results: ReadResults
    storage: ObjectStorage
    engine: Engine
    roots_of: Callable[[str], tuple[str, ...]]
    inline_bytes_max: int

    def run(self, job: Job, task: ReadTask, tag: str) -> None:
        """Raises NotFound, InvalidRequest, InvalidFilter, VersionExpired, OffsetExpired, CorruptFile, StorageFull,
        EngineStopped, DestinationFailed.
        """
        dataset = self.catalog.get(job.tenant_id, job.dataset_id)
        folder = read_folder(dataset_prefix(job.tenant_id, job.dataset_id), job.id, job.epoch)
        incremental = task.query is ReadQuery.INCREMENTAL
        definition = (
            dataset.definition if incremental else definition_at(self.timeline, dataset, task.version)
        )
        spec = _spec(definition, task, dataset.definition.schema)
        if task.meta:
            times = commit_times_to(self.timeline, job.tenant_id, job.dataset_id, task.version)
            spec = msgspec.structs.replace(spec, commit_times=times)
        if task.corrected_since:
            since = self.timeline.next_offset(job.tenant_id, job.dataset_id, task.version)
            spec = msgspec.structs.replace(spec, corrections=corrections_since(self.index, dataset, since))
        if incremental and reads_feed(definition) and not task.with_sources:
            files = self._read(spec, self._changed_in_feed(dataset, task, spec), task, folder, tag)
        else:
            with self.pins.pin(job.tenant_id, [(job.dataset_id, task.version)], tag):
                sources = (self._changed_in_table if incremental else self._table)(dataset, task, spec)
                files = self._read(spec, sources, task, folder, tag)
        result = self._described(dataset, task, self._result(task, spec, files))
        if task.destination is not None:
            folder_uri = self._publish(job, dataset, task.destination, result, files, folder, tag)
            result = msgspec.structs.replace(result, destination=folder_uri)
        read = FinishedRead(
            dataset_id=job.dataset_id,
            claim=job.claim,
            result=READ.stored(result),
            files=tuple(_result_file(file, number, spec.format) for number, file in enumerate(files, 1)),
        )
        self.results.finish(job.tenant_id, read)

    def _publish(
        self,
        job: Job,
        dataset: Dataset,
        destination: str,
        result: ReadResult,
        files: Sequence[ExportedFile],
        folder: str,
        tag: str,
    ) -> str:
        """Copies the files to a folder of the job, and after all others the manifest. Returns the folder.

        The names have the number of the attempt, so that the files of a manifest never change: the rows of a repeated
        attempt are the same, but need not be the same bytes. Raises DestinationFailed.
        """
        copies = [_copy(file, number, job.epoch, result.format) for number, file in enumerate(files, 1)]
        manifest = ReadManifest(
            job_id=job.id,
            dataset=dataset.id,
            dataset_name=dataset.definition.name,
            query=result.query,
            version=result.version,
            begin=result.begin,
            format=result.format,
            schema=result.schema,
            files=tuple(
                ReadManifestFile(
                    name=copy.name,
                    rows=copy.row_count,
                    size_bytes=copy.size_bytes,
                    checksum=f"xxh3-128:{copy.checksum}",
                    sha256=file.sha256,
                )
                for copy, file in zip(copies, files, strict=True)
            ),
            rows=result.rows,
            created_at=datetime.now(UTC),
        )
        uri = f"{destination.rstrip('/')}/{job.id}"
        listed = write_manifest(self.storage, f"{folder}/{MANIFEST_NAME}", manifest)
        roots = self.roots_of(job.tenant_id)
        for some in ([(copy,) for copy in copies], [(listed,)]):
            tasks = [PublishTask(files=each, destination=uri, roots=roots) for each in some]
            if tasks:
                self.engine.run(tasks, tag)
        self.storage.delete([listed.path])
        return uri

    def _described(self, dataset: Dataset, task: ReadTask, result: ReadResult) -> ReadResult:
        """The result with what its reader may know of the commits of the dataset."""
        # They may be about rows that a reader of some of them may not see.
        if task.access.restricted:
            return result
        corrected = self.later.of_version(dataset, task.version)
        if corrected is False or (corrected and _reads_all(task)):
            result = msgspec.structs.replace(result, corrected=corrected)
        return result if task.begin is None else self._with_commits(dataset, task, task.begin, result)

    def _with_commits(self, dataset: Dataset, task: ReadTask, begin: int, result: ReadResult) -> ReadResult:
        """The result of an incremental read with the metadata of its commits."""
        listed = self.index.commits_of_versions(
            dataset.tenant_id, dataset.id, begin, task.version, bytes_max=_METADATA_BYTES_MAX
        )
        if not listed.commits:
            return result
        truncated = msgspec.UNSET if listed.end is None else True
        return msgspec.structs.replace(result, commits=listed.commits, commits_truncated=truncated)

    def _table(self, dataset: Dataset, task: ReadTask, spec: ReadSpec) -> Sequence[ReadSource]:
        groups = LiveGroups(
            timeline=self.timeline,
            tenant_id=dataset.tenant_id,
            dataset_id=dataset.id,
            version=task.version,
            kinds=(FileKind.BASE,) if task.query is ReadQuery.READ_OPTIMIZED else tuple(FileKind),
        ).reached(spec.dataset, where=spec.where, globs=spec.partitions)
        live = chain.from_iterable(groups.batches())
        scans = plan_read(spec.dataset, live, where=spec.where, partitions=spec.partitions)
        return table_sources(spec, scans, task.limit)

    def _changed_in_feed(self, dataset: Dataset, task: ReadTask, spec: ReadSpec) -> list[ReadSource]:
        """The rows that an export of the same range has, from the feed. Raises OffsetExpired."""
        since, until = self._offsets(dataset, task)
        bounds = self.index.bounds(dataset.tenant_id, dataset.id)
        bounds.checked(since)
        segments = self.index.segments(dataset.tenant_id, dataset.id, since, until)
        parts = export_parts(
            _exported(task, spec), segments, since=since, until=until, earliest=bounds.earliest, prefix=""
        )
        return [ChangedRows(part=part) for part in parts]

    def _changed_in_table(self, dataset: Dataset, task: ReadTask, spec: ReadSpec) -> list[ReadSource]:
        """The rows that an export of the same range has, from the table."""
        since, until = self._offsets(dataset, task)
        parts = changed_row_parts(
            _exported(task, spec),
            self.timeline.live_files(dataset.tenant_id, dataset.id, task.version, None),
            spec.where,
            begin=task.begin or 0,
            since=since,
            until=until,
            earliest=since,
            prefix="",
        )
        return [ChangedRows(part=part) for part in parts]

    def _offsets(self, dataset: Dataset, task: ReadTask) -> tuple[int, int]:
        """The range of an incremental read in the feed."""
        since, until = (
            self.timeline.next_offset(dataset.tenant_id, dataset.id, version)
            for version in (task.begin or 0, task.version)
        )
        return since, until

    def _read(
        self, spec: ReadSpec, sources: Sequence[ReadSource], task: ReadTask, folder: str, tag: str
    ) -> list[ExportedFile]:
        parts = read_parts(spec, sources, f"{folder}/part", task.limit)
        if not spec.order_by:
            return self._files(parts, task.limit, tag)
        answers = self.engine.run(parts, tag)
        runs = [run for answer in answers for run in answer.runs]
        if not runs:
            return [file for answer in answers for file in answer.files]
        size = sum(run.memory_bytes for run in runs)
        ranges = cut_ranges(runs, spec.order_by, bytes_max=_RANGE_BYTES)
        sorted_parts = range_parts(spec, ranges, f"{folder}/range", size_bytes=size, limit=task.limit)
        files = self._files(sorted_parts, task.limit, tag)
        self.storage.delete([run.path for run in runs])
        return files

    def _files(self, parts: Sequence[ReadPart], limit: int | None, tag: str) -> list[ExportedFile]:
        """The files of parts that are run in order, as many as the limit takes."""
        answers: list[ReadPartResult] = []
        if limit is None:
            answers = self.engine.run(parts, tag)
        else:
            wave = _WAVE
            while len(answers) < len(parts) and sum(answer.rows for answer in answers) < limit:
                answers += self.engine.run(parts[len(answers) : len(answers) + wave], tag)
                wave *= _WAVE
            whole, rerun = shortened(parts, answers, limit)
            # A part has its rows in the same order each time; without an order any rows will do.
            answers = answers[:whole] + ([] if rerun is None else self.engine.run([rerun], tag))
        return [file for answer in answers for file in answer.files]

    def _result(self, task: ReadTask, spec: ReadSpec, files: Sequence[ExportedFile]) -> ReadResult:
        size = sum(file.size_bytes for file in files)
        schema = spec.dataset.schema.select(spec.columns)
        joins = spec.format is not FileFormat.PARQUET or len(files) <= 1
        return ReadResult(
            query=task.query,
            version=task.version,
            begin=task.begin,
            format=spec.format,
            inline=task.disposition is Disposition.INLINE and joins and size <= self.inline_bytes_max,
            rows=sum(file.row_count for file in files),
            files=len(files),
            size_bytes=size,
            schema=ReadSchema(
                id=schema.id,
                fields=(
                    *(msgspec.structs.replace(each, nullable=True) for each in schema.fields),
                    *(META_RESULT_FIELDS if task.meta else ()),
                    *(CORRECTED_RESULT_FIELDS if task.corrected_since else ()),
                ),
            ),
        )


def _reads_all(task: ReadTask) -> bool:
    """Whether the result has all rows of the version."""
    selects = (task.where, task.partitions, task.limit)
    return task.query is ReadQuery.SNAPSHOT and all(each is None for each in selects)


def _spec(definition: DatasetDefinition, task: ReadTask, latest: Schema) -> ReadSpec:
    """`latest`: the present schema. Raises InvalidRequest, InvalidFilter, MaskedColumn, GrantNotApplicable."""
    bound = bind_access(task.access, latest, definition.schema)
    bound.check_partitions(definition, task.partitions)
    bound.refuse_masked([each.column for each in task.order_by], "order_by")
    return ReadSpec(
        dataset=definition,
        columns=tuple(projection(definition.schema, task.columns).names()),
        where=bound.selecting(None if task.where is None else parse_filter(task.where, definition.schema)),
        partitions=task.partitions,
        order_by=task.order_by,
        format=FileFormat(task.format),
        target_bytes=DEFAULT_TARGET_BYTES,
        masked=tuple(sorted(bound.masked)),
    )


def _exported(task: ReadTask, spec: ReadSpec) -> ExportSpec:
    return ExportSpec(
        dataset=spec.dataset,
        query=ExportQuery.INCREMENTAL,
        # The format is not used: an export only determines which rows there are.
        format=ExportFormat.ARROW,
        form=ChangeForm.TWO_EVENT,
        columns=spec.read_columns,
        where=task.where,
        partitions=task.partitions,
        target_bytes=spec.target_bytes,
        access=task.access,
    )


def _copy(file: ExportedFile, number: int, attempt: int, format_: FileFormat) -> RunFile:
    """A file under its name in a destination."""
    name = f"part-{number:05d}-{attempt:05d}.{format_.value}"
    return msgspec.structs.replace(_result_file(file, number, format_), name=name)


def _result_file(file: ExportedFile, number: int, format_: FileFormat) -> RunFile:
    return RunFile(
        path=file.path,
        name=f"part-{number:05d}.{format_.value}",
        row_count=file.row_count,
        size_bytes=file.size_bytes,
        checksum=file.checksum,
    )
