"""The JSON of a quarantine, and the options of its list."""

from __future__ import annotations

import base64
from datetime import datetime
from enum import Enum
from typing import Annotated, Final

import msgspec

from app.features.quarantine.service import QuarantinedRecord
from app.http.parameters.page_options import PageOptions
from app.kernel.format.errors import FieldError
from app.kernel.paging import Page

NAMED_RECORDS_MAX: Final = 10_000

_Payload = Annotated[str, msgspec.Meta(examples=['{"id": 1, "amount": 120}'])]
_RecordId = Annotated[str, msgspec.Meta(examples=["12-0"])]


class RecordState(str, Enum):
    """Whether a record waits in quarantine, or was redriven."""

    QUARANTINED = "quarantined"
    REDRIVEN = "redriven"


class PayloadEncoding(str, Enum):
    """How a payload is written: as it is, or, where it is not UTF-8, in base64."""

    TEXT = "text"
    BASE64 = "base64"


class ReadQuarantineOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `read_quarantine`."""

    job: str | None = None
    """The id of a job: its records only."""


class QuarantinedRecordResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A bad record of a write."""

    id: _RecordId
    """Its id."""
    job_id: str
    """The job of the write."""
    position: Annotated[int, msgspec.Meta(examples=[4])]
    """Its row number in the write."""
    errors: list[FieldError]
    """What is wrong with it; pointers start at the record."""
    payload: _Payload
    """What was sent: the JSON text of a row, the record of a CSV file; a row of Arrow or Parquet as JSON."""
    encoding: PayloadEncoding
    """How `payload` is written."""
    header: str | None
    """The header line of the CSV file; null for other formats."""
    written_at: datetime
    """When it was quarantined."""
    state: RecordState
    """Whether it waits, or was redriven."""
    redrive_job_id: str | None
    """The job that redrove it; null for none."""


class QuarantinePage(msgspec.Struct, frozen=True, kw_only=True):
    """Records in the order in which they were quarantined."""

    items: list[QuarantinedRecordResponse]
    """The records of this page; a page of large records ends early."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class RedriveRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record to redrive."""

    id: _RecordId
    """Its id."""
    payload: _Payload | msgspec.UnsetType = msgspec.UNSET
    """The repaired record; as it was by default."""


class AcceptLate(str, Enum):
    """Records behind the watermark are written."""

    ACCEPT = "accept"


class CreateRedrive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which records to redrive: either those of a job, or some by their ids."""

    job: str | msgspec.UnsetType = msgspec.UNSET
    """The id of a job: its records that wait, 100,000 at most."""
    records: (
        Annotated[list[RedriveRecord], msgspec.Meta(min_length=1, max_length=NAMED_RECORDS_MAX)]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    """Records of one job."""
    late: AcceptLate | msgspec.UnsetType = msgspec.UNSET
    """Whether records behind the watermark are written; by default the watermark of the dataset decides."""


def quarantine_page(page: Page) -> QuarantinePage:
    """The JSON of a page of records."""
    return QuarantinePage(items=[_response(item) for item in page.items], next_page_token=page.next_token)


def _response(item: QuarantinedRecord) -> QuarantinedRecordResponse:
    record = item.record
    encoding, payload = PayloadEncoding.TEXT, record.payload
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:
        encoding, payload = PayloadEncoding.BASE64, base64.b64encode(payload)
    return QuarantinedRecordResponse(
        id=item.id,
        job_id=item.job_id,
        position=record.position,
        errors=list(record.errors),
        payload=payload.decode("utf-8"),
        encoding=encoding,
        header=None if record.header is None else record.header.decode("utf-8"),
        written_at=item.written_at,
        state=RecordState.QUARANTINED if item.redriven_by is None else RecordState.REDRIVEN,
        redrive_job_id=item.redriven_by,
    )
