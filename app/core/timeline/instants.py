"""Entries of the timeline, and filters of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from app.kernel.format.errors import Fault
from app.kernel.format.instant import Action, InstantState, RowCounts


class InstantEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a timeline, without its error. Files, bytes and `schema_id` are those of its commit."""

    id: Annotated[str, msgspec.Meta(examples=["20261121100000000000-4f5e7d"])]
    """Its id; ids grow with the time of the request."""
    action: Action
    """What it does to the dataset."""
    operation: Annotated[str, msgspec.Meta(examples=["upsert"])]
    """The operation of a write, or the kind of its job."""
    state: InstantState
    """Where it is in its life; only `completed` is visible to readers."""
    job_id: str | None
    """The job that does it; null for none."""
    transaction_id: str | None
    """The transaction that it is part of; null for none."""
    actor: str | None
    """The id of the API key, or of the subject of the token, that requested it; null for the service itself."""
    actor_name: str | None
    """The name of that key, or that subject."""
    writer_id: str | None
    """The stream that the batch is of; null for none."""
    batch_id: int | None
    """The number of the batch; null for none."""
    parameters: dict[str, Any]
    """The options of the request that differ from their defaults; of a restore or a rollback that is completed, the
    versions `from_version` and `to_version` that it went back from and to, too.
    """
    version: int | None
    """The version that it made; null for none."""
    schema_id: int | None
    """The schema of that version."""
    requested_at: datetime
    """When it was requested."""
    started_at: datetime | None
    """When its last attempt started."""
    completed_at: datetime | None
    """When it was committed."""
    rows: RowCounts
    """What it did to rows."""
    files_added: int
    """Data files that its version added; instants that were committed together share a version."""
    files_removed: int
    """Data files that its version removed."""
    bytes_added: int
    """The size of the files that its version added."""
    bytes_removed: int
    """The size of the files that its version removed."""
    first_offset: int | None
    """The offset of the first change of its version; null for none."""
    last_offset: int | None
    """The offset of the last change of its version; null for none."""
    watermark: datetime | None = None
    """The watermark after its commit; null for none."""
    metadata: Annotated[dict[str, str], msgspec.Meta(examples=[{"run": "nightly-7"}])] = {}
    """Of a write, the metadata of its commit; `{}` for none."""
    replans: int | None = None
    """How often its job was planned again; null without a job, and for archived instants."""
    winner_version: int | None = None
    """The version of the commit after which it was planned again the last time; null if it never was, or if that is
    not known.
    """


class InstantRecord(InstantEntry, frozen=True, kw_only=True):
    """An entry of a timeline. `error`: why its job failed."""

    error: Fault | None


class InstantFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of timeline entries. `since`, `until`: the entries that were requested in [since, until).

    `from_version`, `to_version`: the entries of a version from the first to the second, both of which count. Entries
    without a version are not among them.
    """

    actions: tuple[Action, ...] | None = None
    states: tuple[InstantState, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None
    from_version: int | None = None
    to_version: int | None = None

    def selects(self, record: InstantRecord) -> bool:
        """Whether an entry passes the filter."""
        return (
            (self.actions is None or record.action in self.actions)
            and (self.states is None or record.state in self.states)
            and (self.since is None or record.requested_at >= self.since)
            and (self.until is None or record.requested_at < self.until)
            and self._selects_version(record.version)
        )

    def _selects_version(self, version: int | None) -> bool:
        first, last = self.from_version, self.to_version
        if version is None:
            return first is None and last is None
        return (first is None or version >= first) and (last is None or version <= last)


EVERY_INSTANT: Final = InstantFilter()
