"""Values of timeline. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headwater_client.models.writes import RowCounts


class Instant(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a timeline: an attempt to change the dataset."""

    id: str
    """Its id; ids grow with the time of the request."""
    action: str
    """What it does to the dataset."""
    operation: str
    """The operation of a write, or the kind of its job."""
    state: str
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
    watermark: datetime | None
    """The watermark after its commit; null for none."""
    metadata: dict[str, str]
    """Of a write, the metadata of its commit; `{}` for none."""
    replans: int | None
    """How often its job was planned again; null without a job, and for archived instants."""
    winner_version: int | None
    """The version of the commit after which it was planned again the last time; null if it never was, or if that is not
    known.
    """
    error: dict[str, Any] | None
    """Why it failed; null unless it did."""


class InstantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Instants, the latest request first."""

    items: tuple[Instant, ...]
    """The instants of this page; fewer than `page_size` where many archived ones had to be passed over."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
