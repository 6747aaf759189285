"""The change data feed of a table: files with the changes of versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from app.core.timeline.errors import OffsetExpired
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.version_definition import definition_at
from app.features.objects.values import SHARE
from app.features.sharing.repository.change_versions import ChangeVersionStore
from app.features.sharing.service.change_files import ChangeFiles
from app.features.sharing.service.table_forms import SharedForms, TableRead
from app.features.sharing.service.table_queries import Links, TableLines, milliseconds
from app.features.sharing.service.version_times import first_version_since
from app.features.sharing.values import ChangeVersion
from app.kernel.delta.actions import SharedFile, change_lines, head_lines
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.bound_access import bind_access

VERSIONS_MAX: Final = 1_000
"""How many versions with changes a response has at most. The protocol has no pages of changes."""


class ChangeRange(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that a reader requests: from a version or time on, up to one, both with it."""

    first_version: int | None = None
    last_version: int | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableChanges:
    """The changes of tables."""

    forms: SharedForms
    timeline: VersionReader
    versions: ChangeVersionStore
    files: ChangeFiles
    links: Links

    def read(self, read: TableRead, span: ChangeRange) -> TableLines:
        """The files with the changes of a range of versions.

        Raises InvalidRequest, OffsetExpired, GrantNotApplicable, RestrictedGrant, RenderingUnderWay.
        """
        dataset, access = read.table.dataset, read.table.access
        first, last = self._range(read, span)
        schema = definition_at(self.timeline, dataset, last).schema
        table = self.forms.of_changes(read, schema, first)
        self._check_access(read, first, schema)
        lines = head_lines(table)
        versions = self.versions.versions(dataset.tenant_id, dataset.id, first, last, VERSIONS_MAX + 1)
        if len(versions) > VERSIONS_MAX:
            end = versions[VERSIONS_MAX - 1].version
            raise InvalidRequest.of_member(
                "endingVersion", f"expected up to {end}: a response has up to {VERSIONS_MAX:,} versions"
            )
        self._check_kept(read, first, versions)
        if versions:
            links = self.links.signer(read, SHARE)
            files = [
                SharedFile(
                    url=links.link(each.path),
                    id=each.content,
                    size_bytes=each.size_bytes,
                    expires_at=links.ends_at,
                    version=each.version.version,
                    committed_at=milliseconds(each.version.committed_at),
                )
                for each in self.files.require(dataset, access, schema, versions)
            ]
            lines += change_lines(table.response_format, files)
        return TableLines(version=first, response_format=table.response_format, lines=lines)

    def _range(self, read: TableRead, span: ChangeRange) -> tuple[int, int]:
        dataset = read.table.dataset
        head = dataset.version
        if span.first_version is None and span.since is None:
            raise InvalidRequest.of_member("startingVersion", "expected startingVersion or startingTimestamp")
        if span.first_version is not None and span.since is not None:
            raise InvalidRequest.of_member(
                "startingTimestamp", "expected one of startingVersion and startingTimestamp"
            )
        if span.last_version is not None and span.until is not None:
            raise InvalidRequest.of_member(
                "endingTimestamp", "expected one of endingVersion and endingTimestamp"
            )
        first, last = span.first_version, span.last_version
        if first is None:
            assert span.since is not None
            first = first_version_since(self.timeline, dataset, span.since)
        if last is None:
            last = head
            if span.until is not None:
                last = self.timeline.version_at(dataset.tenant_id, dataset.id, span.until)
        if not 0 <= first <= head:
            raise InvalidRequest.of_member("startingVersion", f"expected a version up to {head}, the latest")
        if last < first:
            raise InvalidRequest.of_member(
                "endingVersion", f"expected a version from {first} on, where the changes begin"
            )
        return first, min(last, head)

    def _check_access(self, read: TableRead, first: int, last: Schema) -> None:
        """Raises GrantNotApplicable if the access cannot be applied to a version of the range, as a query of it does.

        `last`: the schema of the last version.
        """
        dataset = read.table.dataset
        if not read.table.access.restricted:
            return
        earliest = definition_at(self.timeline, dataset, max(first, 1)).schema.id
        for schema in self.forms.publication.renderings.schemas(dataset):
            if earliest <= schema.id <= last.id:
                bind_access(read.table.access, dataset.definition.schema, schema)

    def _check_kept(self, read: TableRead, first: int, versions: Sequence[ChangeVersion]) -> None:
        """Raises OffsetExpired if changes of the range are not kept any more."""
        dataset = read.table.dataset
        start = max(first, 1)
        exists = not dataset.version or self.timeline.commit_times(dataset.tenant_id, dataset.id, [start])
        earliest = dataset.earliest_offset
        if not exists or (versions and versions[0].first_offset < earliest):
            raise OffsetExpired(
                f"changes of version {start} are kept no longer: read the table and go on from its version",
                since=versions[0].first_offset if versions else 0,
                earliest=earliest,
            )
