"""What a clean needs to know of a dataset's past, and what came of it."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from app.format.policies import HistoryPolicy, TimelinePolicy

# A file of instants has so many at least.
ARCHIVED_MIN: Final = 500


class HistoryStart(msgspec.Struct, frozen=True, kw_only=True):
    """Where a history begins: versions from `earliest_version` on are kept. `expired_versions`: how many no longer
    are.
    """

    earliest_version: int
    expired_versions: int


class ExpiredFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files that the catalogue has forgotten, the last of them removed by version `until`. `bytes`: of those that no
    version lists any more.
    """

    files: int
    bytes: int
    until: int


class History(Protocol):
    """How far back datasets are kept."""

    def advance_start(self, tenant_id: str, dataset_id: str, policy: HistoryPolicy) -> HistoryStart:
        """Moves the beginning of the history on as far as the policy allows, and running writes do.

        Raises NotFound.
        """
        ...

    def expire_files(self, tenant_id: str, dataset_id: str, since: int, limit: int) -> ExpiredFiles:
        """Removes the rows of up to `limit` data files that no version sees any more which is kept.

        Of files that version `since` or a later one removed, the earliest first. Nobody comes to hold a version
        meanwhile, and no commit lists a file anew, which is why they wait for it. Raises NotFound.
        """
        ...

    def has_expired(
        self, tenant_id: str, dataset_id: str, history: HistoryPolicy | None, timeline: TimelinePolicy | None
    ) -> bool:
        """Whether a clean would find something to do, and none waits or runs.

        That is versions that the history does not keep, or instants to archive. Raises NotFound.
        """
        ...
