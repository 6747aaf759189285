"""Measures the file groups that were written to, page by page, since no other has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import msgspec

from app.core.feature.reconcilers import Observation
from app.features.maintenance.service.table_service import Measured

# The approximate number of groups of one job: their names are in its request.
_JOB_GROUPS: Final = 1_000
# Measured by one query. A partition of a dataset without a key has as many groups as it has had writes.
_PAGE_GROUPS: Final = 1_000
_PAGE_PARTITIONS: Final = 50
# The rest is measured by the next run.
_PAGES_MAX: Final = 20


class DueGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The groups that are due, and when the next one will be due without a write (None: never)."""

    file_groups: Sequence[str] = ()
    next_at: datetime | None = None


class TouchedGroupNames(Protocol):
    """The file groups that commits have written to."""

    def touched(
        self,
        tenant_id: str,
        dataset_id: str,
        *,
        keyed: bool,
        since_version: int,
        after: str | None,
        limit: int,
    ) -> Sequence[str]:
        """Names of file groups that commits after the version added files to, in order, after the name `after`.

        Without a key: paths of their partitions.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class TouchedGroups:
    """Measures the groups of a table service that works on single file groups."""

    names: TouchedGroupNames

    def measure(
        self,
        observation: Observation,
        measured: Measured,
        due: Callable[[Observation, Sequence[str]], DueGroups],
    ) -> tuple[DueGroups, Measured]:
        """Measures the next groups; returns those that are due, and what is measured then.

        `due`: chooses those that the policy requires among the groups of these names, or of these partitions.
        """
        dataset = observation.dataset
        keyed = dataset.definition.keyed
        until = dataset.version if measured.after is None else measured.until
        limit = _PAGE_GROUPS if keyed else _PAGE_PARTITIONS
        due_names, next_at, after = list[str](), None, measured.after
        for _ in range(_PAGES_MAX):
            names = self.names.touched(
                dataset.tenant_id,
                dataset.id,
                keyed=keyed,
                since_version=measured.since,
                after=after,
                limit=limit,
            )
            page = due(observation, names) if names else DueGroups()
            due_names += page.file_groups
            next_at = min((at for at in (next_at, page.next_at) if at is not None), default=None)
            if len(names) < limit:
                # Groups that were written after `until` are measured twice.
                return DueGroups(file_groups=due_names, next_at=next_at), Measured(since=until, until=until)
            after = names[-1]
            if len(due_names) >= _JOB_GROUPS:
                break
        rest = Measured(since=measured.since, until=until, after=after)
        return DueGroups(file_groups=due_names, next_at=next_at), rest
