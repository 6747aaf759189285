"""What a clean needs to know of a dataset's past, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from app.lake.table_services import HistoryPolicy, TimelinePolicy
from app.services.model import Claim
from app.services.read_model import InstantFilter, InstantRecord

# A file of instants has so many at least.
ARCHIVED_MIN: Final = 500


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """Where a history begins: versions from `earliest_version` on are kept. `forgotten`: how many no longer are."""

    earliest_version: int
    forgotten: int


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """Files that the catalogue has forgotten, the last of them removed by version `until`. `bytes`: of those that no
    version lists any more.
    """

    files: int
    bytes: int
    until: int


class History(Protocol):
    """How far back datasets are kept."""

    def move_on(self, tenant_id: str, dataset_id: str, policy: HistoryPolicy) -> Beginning:
        """Moves the beginning of the history on as far as the policy allows, and running writes do.

        Raises NotFound.
        """
        ...

    def forget(self, tenant_id: str, dataset_id: str, since: int, limit: int) -> Forgotten:
        """Removes the rows of up to `limit` data files that no version sees any more which is kept.

        Of files that version `since` or a later one removed, the earliest first. Nobody comes to hold a version
        meanwhile, and no commit lists a file anew, which is why they wait for it. Raises NotFound.
        """
        ...

    def outlived(
        self, tenant_id: str, dataset_id: str, history: HistoryPolicy | None, timeline: TimelinePolicy | None
    ) -> bool:
        """Whether a clean would find something to do, and none waits or runs.

        That is versions that the history does not keep, or instants to archive. Raises NotFound.
        """
        ...


class TimelineArchive(msgspec.Struct, frozen=True, kw_only=True):
    """A file of instants that have left the catalogue, in the order of their ids, from the first to the last."""

    path: str
    first_instant: str
    last_instant: str
    row_count: int
    size_bytes: int
    checksum: str


class TimelineArchives(Protocol):
    """Instants that are in files."""

    def oldest(self, tenant_id: str, dataset_id: str, keep: int, limit: int) -> list[InstantRecord]:
        """Up to `limit` instants in the order of their ids that can be archived.

        They are final, as all before them are, and not among the latest `keep`.
        """
        ...

    def archive(
        self, tenant_id: str, dataset_id: str, claim: Claim, archive: TimelineArchive, ids: Sequence[str]
    ) -> bool:
        """One transaction: the catalogue has the archive, and the instants in it no longer.

        False, and nothing is changed, if the claim is void, or another archive has some of them.
        """
        ...

    def before(
        self, tenant_id: str, dataset_id: str, instant: str | None, limit: int
    ) -> list[TimelineArchive]:
        """Up to `limit` archives with instants before one (None: any), the one with the latest first."""
        ...


class TimelineFiles(Protocol):
    """Writes and reads files of instants."""

    def write(self, path: str, records: Sequence[InstantRecord]) -> TimelineArchive:
        """`records`: in the order of their ids, one at least. Raises StorageFull."""
        ...

    def read(
        self, archive: TimelineArchive, before: str | None, wanted: InstantFilter, limit: int
    ) -> list[InstantRecord]:
        """Up to `limit` of the wanted instants before one (None: any), the latest first. Raises CorruptFile."""
        ...
