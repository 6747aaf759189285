"""Runs exports: tasks write a range of the feed to files, which are published together or not at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import msgspec

from app.access.errors import NotFound
from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.repository import ChangelogStore
from app.core.changes.service.read_corrections import corrections_since
from app.core.consumers.followers import Consumer
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.export import ExportTask
from app.core.jobs.values import Job
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.read_commit_times import commit_times_to
from app.core.timeline.service.version_definition import definition_at
from app.core.timeline.service.version_pins import VersionPins
from app.features.exports.manifests import write_manifest
from app.features.exports.repository.exports import ExportStore
from app.features.exports.selection import export_selection, export_spec
from app.features.exports.tasks import (
    ExportedPart,
    ExportQuery,
    ExportSpec,
    PublishTask,
    changed_row_parts,
    export_parts,
    reads_feed,
)
from app.features.exports.values import (
    MANIFEST_NAME,
    ExportDefinition,
    ExportRun,
    FinishedRun,
    Manifest,
    ManifestFile,
    ManifestSchema,
    Offsets,
    Versions,
    run_destination,
)
from app.infra.files.ports import ObjectStorage
from app.infra.identifiers import new_id
from app.kernel.codecs.meta_on_read import CORRECTED_RESULT_FIELDS, META_RESULT_FIELDS
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import ChangelogSegment
from app.kernel.format.paths import dataset_prefix, export_folder
from app.kernel.format.result_file import ExportedFile, RunFile


@dataclass(frozen=True, kw_only=True, slots=True)
class RunExports:
    """Runs exports, and starts the runs of exports with a schedule.

    `roots_of`: the folders below which a tenant, by its id, may have destinations.
    """

    catalog: DatasetLookup
    exports: ExportStore
    timeline: VersionReader
    pins: VersionPins
    index: ChangelogStore
    storage: ObjectStorage
    engine: Engine
    roots_of: Callable[[str], tuple[str, ...]]

    def run(self, job: Job, task: ExportTask, tag: str) -> None:
        """Raises NotFound, InvalidRequest, InvalidFilter, OffsetExpired, VersionExpired, CorruptFile, StorageFull,
        EngineStopped, DestinationFailed.
        """
        run = self.exports.run(job.tenant_id, task.export_id, task.number)
        definition = self.exports.get(job.tenant_id, run.export_id).definition
        output = self._recorded(job, run) or self._written(job, run, definition, tag)
        if definition.destination is not None:
            # From then on these are the files of the run: a worker that goes on with it copies the same ones.
            if not self.exports.record(job.tenant_id, output):
                return
            self._publish(job, output, definition.destination, tag)
        self.exports.finish(job.tenant_id, output)

    def _recorded(self, job: Job, run: ExportRun) -> FinishedRun | None:
        """What an earlier attempt has written, if it ended before the files were in the destination."""
        if run.manifest is None:
            return None
        files = self.exports.files(job.tenant_id, run.export_id, run.number)
        return FinishedRun(claim=job.claim, manifest=run.manifest, files=files)

    def _publish(self, job: Job, output: FinishedRun, destination: str, tag: str) -> None:
        """Copies the files, and after all others the manifest: a folder with it is complete."""
        manifest = output.manifest
        folder = run_destination(destination, manifest.export_id, manifest.number)
        roots = self.roots_of(job.tenant_id)
        *files, last = output.files
        for some in ([(file,) for file in files], [(last,)]):
            tasks = [PublishTask(files=each, destination=folder, roots=roots) for each in some]
            if tasks:
                self.engine.run(tasks, tag)

    def _written(self, job: Job, run: ExportRun, definition: ExportDefinition, tag: str) -> FinishedRun:
        """Writes the files of a run."""
        if run.version is not None:
            return self._snapshot(job, run, definition, run.version, tag)
        bounds = self.index.bounds(job.tenant_id, job.dataset_id)
        bounds.checked(run.since)
        segments = self.index.segments(job.tenant_id, job.dataset_id, run.since, run.until)
        # Read after the segments, so that its schema is not earlier than theirs.
        dataset = self.catalog.get(job.tenant_id, job.dataset_id)
        folder = _folder(job, run)
        spec, prefix = export_spec(dataset, definition, dataset.definition), f"{folder}/part"
        if spec.query is ExportQuery.CHANGES or (reads_feed(spec.dataset) and not definition.with_sources):
            parts = export_parts(
                spec, segments, since=run.since, until=run.until, earliest=bounds.earliest, prefix=prefix
            )
            answers = self.engine.run(parts, tag)
        else:
            answers = self._export_table(dataset, definition, run, prefix, tag)
        manifest = _manifest(spec.dataset, dataset.id, definition, run, segments, answers)
        return self._with_manifest(job, folder, manifest, answers)

    def _snapshot(
        self, job: Job, run: ExportRun, definition: ExportDefinition, version: int, tag: str
    ) -> FinishedRun:
        """Writes all rows of a version.

        If the latest version of when the run was accepted is not kept any more, they are those of the first later one
        that is.
        """
        if definition.version is None:
            version = self.pins.leases.first_kept(job.tenant_id, job.dataset_id, version)
        with self.pins.pin(job.tenant_id, [(job.dataset_id, version)], tag):
            dataset = self.catalog.get(job.tenant_id, job.dataset_id)
            end = self.timeline.next_offset(job.tenant_id, job.dataset_id, version)
            spec = self._of_table(
                dataset, definition, definition_at(self.timeline, dataset, version), version
            )
            folder = _folder(job, run)
            parts = changed_row_parts(
                spec,
                self.timeline.live_files(job.tenant_id, job.dataset_id, version, None),
                export_selection(spec).where,
                begin=None,
                since=0,
                until=end,
                earliest=0,
                prefix=f"{folder}/part",
            )
            answers = self.engine.run(parts, tag)
        run = msgspec.structs.replace(run, until=end, version=version)
        manifest = _manifest(spec.dataset, dataset.id, definition, run, (), answers)
        return self._with_manifest(job, folder, manifest, answers)

    def _of_table(
        self, dataset: Dataset, definition: ExportDefinition, at: DatasetDefinition, version: int
    ) -> ExportSpec:
        """What is exported of rows of the table at a version, where the dataset is `at`."""
        spec = export_spec(dataset, definition, at)
        if definition.meta:
            times = commit_times_to(self.timeline, dataset.tenant_id, dataset.id, version)
            spec = msgspec.structs.replace(spec, commit_times=times)
        if definition.corrected_since:
            since = self.timeline.next_offset(dataset.tenant_id, dataset.id, version)
            spec = msgspec.structs.replace(spec, corrections=corrections_since(self.index, dataset, since))
        return spec

    def _with_manifest(
        self, job: Job, folder: str, manifest: Manifest, answers: Sequence[ExportedPart]
    ) -> FinishedRun:
        files = [_of_part(file) for answer in answers for file in answer.files]
        files.append(write_manifest(self.storage, f"{folder}/{MANIFEST_NAME}", manifest))
        return FinishedRun(claim=job.claim, manifest=manifest, files=tuple(files))

    def _export_table(
        self, dataset: Dataset, definition: ExportDefinition, run: ExportRun, prefix: str, tag: str
    ) -> list[ExportedPart]:
        """Exports the rows that changed in the range of a run from the table, as they are at the end of the range.

        If that version is not kept any more, the rows are those of the first later version that is kept, and changes
        up to it count. The next run then has some of these rows again.
        """
        begin, end = self._versions(dataset, run)
        end = self.pins.leases.first_kept(dataset.tenant_id, dataset.id, end)
        spec = self._of_table(dataset, definition, dataset.definition, end)
        with self.pins.pin(dataset.tenant_id, [(dataset.id, end)], tag):
            parts = changed_row_parts(
                spec,
                self.timeline.live_files(dataset.tenant_id, dataset.id, end, None),
                export_selection(spec).where,
                begin=begin,
                since=run.since,
                until=run.until,
                earliest=run.since,
                prefix=prefix,
            )
            return self.engine.run(parts, tag)

    def _versions(self, dataset: Dataset, run: ExportRun) -> tuple[int, int]:
        """The version after which changes count, and the one up to which they do.

        The changes of a commit count as a whole, even if the range begins or ends within them.
        """
        ids = dataset.tenant_id, dataset.id
        end = self.timeline.version_of(*ids, run.until)
        if run.since == 0:
            return 0, end
        begin = self.timeline.version_of(*ids, run.since)
        return begin - (self.timeline.next_offset(*ids, begin) > run.since), end

    def follow(self, tenant_id: str, consumer: Consumer) -> float | None:
        """Starts the next run of an export with a schedule, if it is due."""
        try:
            return self.exports.plan(tenant_id, consumer.name.partition(":")[2], new_id())
        except NotFound:
            # The export has been deleted since, or its dataset has ended.
            return math.inf


def _folder(job: Job, run: ExportRun) -> str:
    """The folder of the files of this attempt."""
    return export_folder(
        dataset_prefix(job.tenant_id, job.dataset_id), run.export_id, run.number, job.id, job.epoch
    )


def _manifest(
    dataset: DatasetDefinition,
    dataset_id: str,
    definition: ExportDefinition,
    run: ExportRun,
    segments: Sequence[ChangelogSegment],
    answers: Sequence[ExportedPart],
) -> Manifest:
    files = [file for answer in answers for file in answer.files]
    changes = definition.query is ExportQuery.CHANGES
    schema = dataset.schema
    next_since = run.until - any(answer.splits_end for answer in answers)
    return Manifest(
        export_id=run.export_id,
        number=run.number,
        dataset=dataset_id,
        dataset_name=dataset.name,
        query=definition.query,
        form=definition.form if changes else None,
        format=definition.format,
        offsets=Offsets(since=run.since, next_since=next_since),
        versions=Versions(first=segments[0].version, last=segments[-1].version) if segments else None,
        schema=ManifestSchema(
            id=schema.id,
            fields=(
                *schema.fields,
                *(META_RESULT_FIELDS if definition.meta else ()),
                *(CORRECTED_RESULT_FIELDS if definition.corrected_since else ()),
            ),
        ),
        files=tuple(_listed(files, run.since, next_since, changes=changes)),
        rows=sum(file.row_count for file in files),
        created_at=datetime.now(UTC),
        version=run.version,
    )


def _listed(
    files: Sequence[ExportedFile], since: int, next_since: int, *, changes: bool
) -> list[ManifestFile]:
    """The files for the manifest. Files of changes join: each ends at the position where the next begins."""
    positions = [since, *(file.end for file in files[:-1]), next_since]
    return [
        ManifestFile(
            name=_of_part(file).name,
            rows=file.row_count,
            size_bytes=file.size_bytes,
            checksum=f"xxh3-128:{file.checksum}",
            sha256=file.sha256,
            first_offset=first if changes else None,
            next_offset=last if changes else None,
        )
        for file, (first, last) in zip(files, pairwise(positions), strict=False)
    ]


def _of_part(file: ExportedFile) -> RunFile:
    return RunFile(
        path=file.path,
        name=file.path.rpartition("/")[2],
        row_count=file.row_count,
        size_bytes=file.size_bytes,
        checksum=file.checksum,
    )
