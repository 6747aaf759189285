"""What a clean needs to know of a dataset's past, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from app.jobs.values import Claim
from app.timeline.instants import InstantFilter, InstantRecord


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
