"""Restores and rollbacks on request: writes of the rows that an earlier version had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.access.errors import NotFound
from app.core.catalog.service import refuse_derived
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.named_version import VersionKind
from app.core.jobs.kinds.write import RestoreTarget, WriteRequest
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted
from app.core.timeline.service.accept_pinned import AcceptPinned
from app.core.timeline.service.name_winner import NameWinner
from app.features.versions.repository.named_versions import NamedVersionStore
from app.features.versions.service.versions import VersionOf
from app.features.versions.values import RestorePoint
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.operation import Operation

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
