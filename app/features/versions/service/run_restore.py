"""Runs restores and rollbacks: finds the version to go back to, and stages the rows that it had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import msgspec

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.feature.stagers import RestoredVersion, StagedInput
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.write import RESTORE, RestoreResult, RestoreTarget
from app.core.jobs.values import Job
from app.core.timeline.repository.timeline import TimelineStore
from app.core.timeline.service.version_pins import VersionPins
from app.features.versions.errors import NotEnoughWrites
from app.kernel.commit.restore_plan import plan_restaging, plan_restore
from app.kernel.format.definition.evolution import under_schema
from app.kernel.format.file_group import DataFile
from app.kernel.format.rows.staged import StagedFile


@dataclass(frozen=True, kw_only=True, slots=True)
class StageEarlier:
    """Stages the rows of earlier versions."""

    catalog: DatasetLookup
    timeline: TimelineStore
    pins: VersionPins
    engine: Engine

    def stage(self, job: Job, prefix: str, tag: str) -> StagedInput:
        """Reads the version as it was then. Paths of the staged files start with `prefix`.

        Raises VersionExpired, NotEnoughWrites, NotFound, CorruptFile, StorageFull, EngineStopped.
        """
        target = job.write.restores
        if target is None:
            raise TypeError(f"job {job.id} is a {job.kind.value}, not a restore")
        dataset = self.catalog.get(job.tenant_id, job.dataset_id)
        version = self._version(dataset, target)
        with self.pins.pin(job.tenant_id, [(dataset.id, version)], tag):
            plan = plan_restore(self._files(dataset, version), self._files(dataset, dataset.version))
            then = under_schema(
                dataset.definition, self.timeline.schema_at(dataset.tenant_id, dataset.id, version)
            )
            tasks = plan_restaging(plan, then, dataset.definition, prefix)
            files = [each.file for each in self.engine.run(tasks, tag) if each.file is not None]
        return StagedInput(
            job=job,
            staged=_numbered(files),
            restored=RestoredVersion(
                plan=plan,
                read_version=dataset.version,
                result=RESTORE.stored(RestoreResult(from_version=dataset.version, to_version=version)),
            ),
        )

    def _version(self, dataset: Dataset, target: RestoreTarget) -> int:
        if target.version is not None:
            return target.version
        instants = target.instants or 1
        writes = self.timeline.latest_writes(dataset.tenant_id, dataset.id, dataset.version, instants)
        if len(writes) < instants:
            raise NotEnoughWrites(
                f"cannot undo {instants} versions: writes have made only {len(writes)}",
                instants=instants,
                writes=len(writes),
            )
        return writes[-1] - 1

    def _files(self, dataset: Dataset, version: int) -> list[DataFile]:
        return self.timeline.live_files(dataset.tenant_id, dataset.id, version, None)


def _numbered(files: Sequence[StagedFile]) -> tuple[StagedFile, ...]:
    """The files as the input of one write, with the positions of their rows in it."""
    starts = accumulate((file.rows for file in files), initial=0)
    return tuple(
        msgspec.structs.replace(file, first_row=start) for file, start in zip(files, starts, strict=False)
    )
