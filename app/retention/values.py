"""The port of a dataset's history, and the values of a clean."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from app.format.policies import HistoryPolicy, TimelinePolicy

# Instants in one file, at least.
ARCHIVED_MIN: Final = 500


class HistoryStart(msgspec.Struct, frozen=True, kw_only=True):
    """Where a history begins: versions from `earliest_version` on are kept. `expired_versions`: how many expired."""

    earliest_version: int
    expired_versions: int


class ExpiredFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were deleted from the catalogue, the last of them removed by version `until`. `bytes`: the size of
    those that no version lists any more.
    """

    files: int
    bytes: int
    until: int


class History(Protocol):
    """How far back datasets are kept."""

    def advance_start(self, tenant_id: str, dataset_id: str, policy: HistoryPolicy) -> HistoryStart:
        """Moves the beginning of the history forward as far as the policy and running writes allow.

        Raises NotFound.
        """
        ...

    def expire_files(self, tenant_id: str, dataset_id: str, since: int, limit: int) -> ExpiredFiles:
        """Removes the rows of up to `limit` data files that no retained version uses.

        These are files that version `since` or a later one removed, the earliest first. Meanwhile new pins of versions
        and commits wait. Raises NotFound.
        """
        ...

    def has_expired(
        self, tenant_id: str, dataset_id: str, history: HistoryPolicy | None, timeline: TimelinePolicy | None
    ) -> bool:
        """Whether there are versions beyond the history or instants to archive, and no clean waits or runs.

        Raises NotFound.
        """
        ...
