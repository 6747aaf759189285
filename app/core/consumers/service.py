"""Positions of readers in the API, and the worker's loop over followers."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.changes.positions import SnapshotPosition
from app.core.consumers.followers import Consumer, ConsumerKind, Follower, Followers
from app.core.consumers.repository.consumers import ConsumerStore
from app.core.consumers.values import (
    ConsumerChange,
    ConsumerLease,
    ConsumerStatus,
    ExpectedRevision,
    consumer_managed,
)
from app.kernel.format.errors import FieldError, HeadwaterError, InvalidRequest
from app.kernel.paging import Page

# No URL keeps the names `.` and `..`. Names of followers contain a `:`, so they never equal a reader's.
_NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Consumers:
    """The consumers of a tenant's datasets."""

    index: ConsumerStore

    def get(self, dataset: Dataset, name: str) -> ConsumerStatus:
        """Raises NotFound."""
        return self.index.get(dataset.tenant_id, dataset.id, name)

    def position(self, dataset: Dataset, name: str) -> int | SnapshotPosition:
        """Where a consumer continues. Raises NotFound."""
        return self.get(dataset, name).consumer.place

    def list(self, dataset: Dataset, *, page_size: int, page_token: str | None) -> Page:
        """ConsumerStatus items of every kind, by name. Raises InvalidRequest."""
        return self.index.list(dataset.tenant_id, dataset.id, page_size=page_size, page_token=page_token)

    def readers(
        self, tenant_id: str, limit: int, dataset_ids: Collection[str] | None = None
    ) -> Sequence[ConsumerStatus]:
        """Up to `limit` consumers of readers, of these datasets or of all, by dataset and name."""
        return self.index.readers(tenant_id, limit, dataset_ids)

    def put(
        self, dataset: Dataset, name: str, change: ConsumerChange, condition: ExpectedRevision
    ) -> tuple[ConsumerStatus, bool]:
        """Makes a consumer, or moves it; true if it was made. Raises as `ConsumerIndex.put` does."""
        if not _NAME.fullmatch(name):
            raise self._unnameable(dataset, name)
        return self.index.put(dataset.tenant_id, dataset.id, name, change, condition)

    def _unnameable(self, dataset: Dataset, name: str) -> HeadwaterError:
        try:
            return consumer_managed(self.get(dataset, name).consumer)
        except NotFound:
            detail = "expected 1–128 letters, digits, '.', '_' or '-', and neither '.' nor '..'"
            return InvalidRequest(
                f"{name!r} is no name for a consumer", [FieldError(pointer="/name", detail=detail)]
            )

    def delete(self, dataset: Dataset, name: str, *, revision: int | None) -> None:
        """Raises NotFound, PreconditionFailed, ConsumerManaged."""
        self.index.delete(dataset.tenant_id, dataset.id, name, revision=revision)

    def lease(
        self, dataset: Dataset, name: str, member: str, seconds: int, token: str | None
    ) -> ConsumerLease:
        """Raises NotFound, ConsumerLeased, LeaseLost, ConsumerManaged."""
        return self.index.lease(dataset.tenant_id, dataset.id, name, member, seconds, token)

    def release(self, dataset: Dataset, name: str, token: str) -> None:
        """Raises NotFound, LeaseLost, ConsumerManaged."""
        self.index.release(dataset.tenant_id, dataset.id, name, token)


_log = logging.getLogger(__name__)
# Longer than any piece of work takes.
_LEASE_SECONDS: Final = 120.0
_AFTER_A_FAULT_SECONDS: Final = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Follow:
    """The worker's use case. `owner` names this worker process."""

    followers: Followers
    handlers: Mapping[ConsumerKind, Follower]
    owner: str

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        """Does one piece of work of one follower of the dataset; False if none is due."""
        consumer = self.followers.claim(tenant_id, dataset_id, self.owner, _LEASE_SECONDS)
        if consumer is None:
            return False
        self.followers.settle(tenant_id, consumer, self._follow(tenant_id, consumer))
        return True

    def _follow(self, tenant_id: str, consumer: Consumer) -> float | None:
        try:
            return self.handlers[consumer.kind].follow(tenant_id, consumer)
        except Exception:
            # Handlers report errors of a user's definition themselves. This is a fault of the service or of its
            # storage.
            _log.exception("%s of dataset %s will be tried again", consumer.name, consumer.dataset_id)
            return _AFTER_A_FAULT_SECONDS
