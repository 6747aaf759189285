"""A write as it stands in a request: the JSON envelope, or a raw body with its options in the query."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Annotated, Any

import msgspec

from app.api.json_body import decode_json
from app.lake.operation import Operation
from app.lake.rows import Format
from app.services.accept_write import IncomingWrite, JsonRows, UploadReference, require_operation
from app.services.bodies import StoredBody


class Compression(str, Enum):
    """How the bytes of an upload are packed."""

    NONE = "none"
    GZIP = "gzip"


_ROWS = msgspec.Meta(
    extra_json_schema={"type": "array", "items": {"type": "object", "additionalProperties": True}}
)


class RowsSource(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="rows"
):
    """Rows in the request itself, one object each with the dataset's columns as members."""

    # Left as text: the decoder of the dataset's schema reads the rows, once.
    rows: Annotated[msgspec.Raw, _ROWS]


class UploadSource(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="upload"
):
    """Rows in an earlier upload."""

    upload_id: str
    format: Format
    compression: Compression = Compression.NONE


class NewWrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write."""

    operation: Annotated[str, msgspec.Meta(extra_json_schema={"$ref": "#/components/schemas/Operation"})]
    source: RowsSource | UploadSource


def from_envelope(body: bytes, idempotency_key: str | None) -> IncomingWrite:
    """The write that a JSON body asks for. Raises InvalidRequest, MalformedBody."""
    new = decode_json(body, NewWrite)
    operation = require_operation(new.operation)
    match new.source:
        case RowsSource(rows=rows):
            text = bytes(rows)
            source: JsonRows | UploadReference = JsonRows(text=text)
            facts: list[Any] = ["rows", hashlib.sha256(text).hexdigest()]
        case UploadSource(upload_id=upload_id, format=form, compression=compression):
            source = UploadReference(upload_id=upload_id, format=form, gzip=compression is Compression.GZIP)
            facts = ["upload", upload_id, form.value, compression.value]
    return IncomingWrite(
        operation=operation,
        source=source,
        idempotency_key=idempotency_key,
        request_hash=request_hash(operation, "application/json", facts),
    )


def body_facts(content: bytes | StoredBody, *, gzip: bool) -> list[Any]:
    """What makes a raw body that body. A checksum of the stored bytes does: they are the client's own."""
    if isinstance(content, StoredBody):
        return [content.size_bytes, content.checksum, gzip]
    return [len(content), hashlib.sha256(content).hexdigest(), gzip]


def request_hash(operation: Operation, media_type: str, facts: list[Any]) -> str:
    """SHA-256 over everything that makes a request that request, hexadecimal."""
    return hashlib.sha256(msgspec.json.encode([operation.value, media_type, *facts])).hexdigest()
