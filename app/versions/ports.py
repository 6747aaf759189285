"""The port of the store of named versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.jobs.tasks import NamedVersion, SavepointTask, TagTask, VersionKind
from app.jobs.values import Claim
from app.paging import Page


class NamedVersions(Protocol):
    """Savepoints and tags: versions of a dataset that are kept under a name."""

    def name(self, tenant_id: str, dataset_id: str, claim: Claim, task: SavepointTask | TagTask) -> bool:
        """Names the version (None: the head) and ends the claimed job and its instant, in one transaction.

        False if the claim is void. Raises NameTaken, VersionExpired, NotFound (dataset gone).
        """
        ...

    def get(self, tenant_id: str, dataset_id: str, name: str) -> NamedVersion:
        """Raises NotFound."""
        ...

    def list(
        self,
        tenant_id: str,
        dataset_id: str,
        kind: VersionKind | None = None,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """NamedVersion items by name, of one kind or all. Raises InvalidRequest for an unknown page token."""
        ...

    def remove(self, tenant_id: str, dataset_id: str, names: Sequence[str]) -> int:
        """Removes names, whose versions may then be cleaned. Returns how many were removed."""
        ...
