"""Restores and rollbacks: writes of the rows that an earlier version had, accepted on request and staged by jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import msgspec

from app.access.errors import NotFound
from app.core.catalog.ports import DatasetLookup
from app.core.catalog.service import refuse_derived
from app.core.catalog.values import Dataset
from app.core.feature.stagers import RestoredVersion, StagedInput
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.named_version import VersionKind
from app.core.jobs.kinds.write import RESTORE, RestoreResult, RestoreTarget, WriteRequest
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted, Job
from app.core.timeline.repository.timeline import TimelineStore
from app.core.timeline.service.accept_pinned import AcceptPinned
from app.core.timeline.service.name_winner import NameWinner
from app.core.timeline.service.version_definition import definition_at
from app.core.timeline.service.version_pins import VersionPins
from app.features.versions.errors import NotEnoughWrites
from app.features.versions.repository import NamedVersionStore
from app.features.versions.service.versions import VersionOf
from app.features.versions.values import RestorePoint
from app.kernel.commit.restore_plan import plan_restaging, plan_restore
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.file_group import DataFile
from app.kernel.format.operation import Operation
from app.kernel.format.paths import attempt_name, dataset_prefix
from app.kernel.format.rows.staged import StagedFile

_WAYS: Final = ("version", "as_of", "savepoint", "tag")


@dataclass(frozen=True, kw_only=True, slots=True)
class Restores:
    """Accepts restores and rollbacks."""

    names: NamedVersionStore
    versions: VersionOf
    winners: NameWinner
    jobs: RequestJob

    def restore(
        self,
        dataset: Dataset,
        point: RestorePoint,
        identity: RequestIdentity,
        *,
        expected_version: int | None = None,
    ) -> Accepted:
        """A job that gives the dataset the rows of an earlier version.

        Raises InvalidRequest, DerivedDataset, VersionExpired, CommitConflict, IdempotencyMismatch, NotFound.
        """
        refuse_derived(dataset)
        earlier_job = self.jobs.replayed(dataset, identity)
        if earlier_job is not None:
            return earlier_job
        return self._accept(
            dataset, RestoreTarget(version=self._find(dataset, point)), identity, expected_version
        )

    def rollback(
        self,
        dataset: Dataset,
        instants: int,
        identity: RequestIdentity,
        *,
        expected_version: int | None = None,
    ) -> Accepted:
        """A job that undoes the newest versions that writes have made by the time it runs.

        Raises DerivedDataset, CommitConflict, IdempotencyMismatch, NotFound.
        """
        refuse_derived(dataset)
        earlier_job = self.jobs.replayed(dataset, identity)
        if earlier_job is not None:
            return earlier_job
        return self._accept(dataset, RestoreTarget(instants=instants), identity, expected_version)

    def _find(self, dataset: Dataset, point: RestorePoint) -> int:
        members = [name for name in _WAYS if getattr(point, name) is not None]
        if len(members) != 1:
            ways = ", ".join(_WAYS)
            detail = f"expected exactly one of {ways}; got {', '.join(members) or 'none'}"
            raise InvalidRequest(
                detail, [FieldError(pointer=f"/{name}", detail=detail) for name in members or _WAYS]
            )
        if point.savepoint is not None:
            named_version = self.names.get(dataset.tenant_id, dataset.id, point.savepoint)
            if named_version.kind is not VersionKind.SAVEPOINT:
                raise NotFound(
                    f"{point.savepoint!r} is a {named_version.kind.value} of this dataset, not a savepoint: give it as "
                    "tag"
                )
            return named_version.version
        return self.versions.find(dataset, version=point.version, as_of=point.as_of, tag=point.tag)

    def _accept(
        self, dataset: Dataset, target: RestoreTarget, identity: RequestIdentity, expected_version: int | None
    ) -> Accepted:
        if expected_version is not None and expected_version < dataset.version:
            # Versions only grow: it fails now. Later versions are checked at the commit.
            self.winners.check_version(dataset.tenant_id, dataset.id, expected_version, dataset.version)
        request = WriteRequest(
            operation=Operation.SNAPSHOT,
            options=WriteOptions(expected_version=expected_version),
            schema_id=dataset.definition.schema.id,
            restores=target,
        )
        if target.version is None:
            return self.jobs.accept(dataset, request, identity)
        acceptor = AcceptPinned(requests=self.jobs, leases=self.versions.leases)
        return acceptor.accept(dataset, target.version, request, identity)


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
            then = definition_at(self.timeline, dataset, version)
            tasks = plan_restaging(
                plan,
                then,
                dataset.definition,
                prefix,
                data_prefix=dataset_prefix(dataset.tenant_id, dataset.id),
                attempt=attempt_name(job.instant, job.epoch, 0),
            )
            results = self.engine.run(tasks, tag)
            files = [each.file for each in results if each.file is not None]
            plan = plan.with_tombstones(file for each in results for file in each.tombstones)
        return StagedInput(
            job=job,
            files=_numbered(files),
            restored_version=RestoredVersion(
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
