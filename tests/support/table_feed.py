"""The index of the feed of a table without a service, for the readers of its changes."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from app.access.errors import NotFound
from app.core.catalog.values import Dataset, SchemaVersion
from app.core.changes.positions import FeedBounds
from app.core.changes.service.read_corrections import ReadCorrections
from app.core.timeline.repository.commit_metadata import ListedCommits
from app.features.reads.service.later_corrections import LaterCorrections
from app.kernel.changelog.corrections import resolved_bound
from app.kernel.format.file_group import ChangelogFile, ChangelogSegment
from tests.support.lake_table import LakeTable
from tests.support.versioned_tables import VersionedTable, committed_at


@dataclass(kw_only=True)
class TableFeed:
    """The changelog files of a table, as the catalogue lists them; `earliest` is where the feed was cut."""

    table: LakeTable
    earliest: int = 0

    @property
    def dataset(self) -> Dataset:
        return Dataset(
            id="d", tenant_id="t", definition=self.table.dataset, version=self.table.version,
            next_offset=self.table.next_offset, created_at=committed_at(0), committed_at=None,
        )  # fmt: skip

    def get(self, tenant_id: str, reference: str) -> Dataset:
        return self.dataset

    def schema(self, tenant_id: str, dataset_id: str, schema_id: int) -> SchemaVersion:
        raise NotFound(f"There is no schema {schema_id}")

    def bounds(self, tenant_id: str, dataset_id: str) -> FeedBounds:
        return FeedBounds(earliest=self.earliest, next_offset=self.table.next_offset)

    def segments(
        self, tenant_id: str, dataset_id: str, since: int, until: int, *, limit: int | None = None
    ) -> list[ChangelogSegment]:
        found = [each for each in self._all() if each.first_offset < until and each.end_offset > since]
        return found[:limit]

    def correcting(
        self, tenant_id: str, dataset_id: str, first: int, last: int, *, since: int, limit: int
    ) -> list[ChangelogSegment]:
        return [
            each
            for each in self.segments(tenant_id, dataset_id, since, 2**62)
            if _may(each.file, first, last)
        ][:limit]

    def commits_of_versions(
        self, tenant_id: str, dataset_id: str, begin: int, end: int, *, bytes_max: int
    ) -> ListedCommits:
        return ListedCommits(commits=(), end=None)

    def _all(self) -> list[ChangelogSegment]:
        return [
            ChangelogSegment(
                file=msgspec.structs.replace(
                    file,
                    corrects_min=resolved_bound(file.corrects_min, first_offset),
                    corrects_max=resolved_bound(file.corrects_max, first_offset),
                ),
                first_offset=first_offset,
                version=version,
                committed_at=committed_at(version),
                row_count=file.row_count,
            )
            for version, first_offset, file in self.table.feed
        ]


def corrections_of(versioned: VersionedTable) -> ReadCorrections:
    """The corrections in the feed of a table with a past."""
    return ReadCorrections(index=TableFeed(table=versioned.table), reader=versioned.table.reader)


def later_corrections_of(versioned: VersionedTable) -> LaterCorrections:
    """What later versions of a table correct."""
    return LaterCorrections(timeline=versioned, corrections=corrections_of(versioned))


def _may(file: ChangelogFile, first: int, last: int) -> bool:
    if file.corrects_min is None or file.corrects_max is None:
        return False
    return file.corrects_max >= first and file.corrects_min <= last
