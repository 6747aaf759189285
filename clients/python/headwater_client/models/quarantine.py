"""Values of quarantine. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime

import msgspec


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """A fault in a request."""

    pointer: str
    """The RFC 6901 JSON pointer to the member, or the parameter."""
    detail: str
    """What is wrong with it, and what is expected."""


class QuarantinePage(msgspec.Struct, frozen=True, kw_only=True):
    """Records in the order in which they were quarantined."""

    items: tuple[QuarantinedRecord, ...]
    """The records of this page; a page of large records ends early."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class QuarantinedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A bad record of a write."""

    id: str
    """Its id."""
    job_id: str
    """The job of the write."""
    position: int
    """Its row number in the write."""
    errors: tuple[FieldError, ...]
    """What is wrong with it; pointers start at the record."""
    payload: str
    """What was sent: the JSON text of a row, the record of a CSV file; a row of Arrow or Parquet as JSON."""
    encoding: str
    """How `payload` is written."""
    header: str | None
    """The header line of the CSV file; null for other formats."""
    written_at: datetime
    """When it was quarantined."""
    state: str
    """Whether it waits, or was redriven."""
    redrive_job_id: str | None
    """The job that redrove it; null for none."""
