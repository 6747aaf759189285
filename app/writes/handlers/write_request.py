"""A write as it stands in a request: the JSON envelope, or a raw body with its options in the query."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Annotated, Any

import msgspec

from app.codecs import Format
from app.commit.write_options import OnError, Overwrite, SaveMode, WriteOptions
from app.files.received_body import StoredBody
from app.format.operation import Operation
from app.http.json_body import decode_json
from app.writes.service.accept import IncomingWrite, JsonRows, UploadReference, require_operation


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
    """A write. `source` is required but for deletes by filter and by partition, which have none.

    `where`: for operation delete, the rows to take out. `partitions`: for delete_partition, globs of partition paths.
    `expected_version`: the write fails unless the dataset is at it. `writer_id`, `batch_id`: a batch of a stream,
    whose batches are numbered upwards.
    """

    operation: Annotated[str, msgspec.Meta(extra_json_schema={"$ref": "#/components/schemas/Operation"})]
    source: RowsSource | UploadSource | msgspec.UnsetType = msgspec.UNSET
    mode: SaveMode = SaveMode.APPEND
    overwrite: Overwrite | msgspec.UnsetType = msgspec.UNSET
    where: str | msgspec.UnsetType = msgspec.UNSET
    partitions: list[str] | msgspec.UnsetType = msgspec.UNSET
    on_error: OnError = OnError.FAIL
    merge_schema: bool = False
    explicit_cast: bool = False
    drop_duplicates: bool = False
    expected_version: int | msgspec.UnsetType = msgspec.UNSET
    writer_id: str | msgspec.UnsetType = msgspec.UNSET
    batch_id: int | msgspec.UnsetType = msgspec.UNSET

    def options(self) -> WriteOptions:
        """What was given of the options."""
        specified = {
            name: value
            for name in WriteOptions.__struct_fields__
            if (value := getattr(self, name)) is not msgspec.UNSET
        }
        return WriteOptions(**specified | {"partitions": tuple(specified.get("partitions", ()))})


def from_envelope(body: bytes, idempotency_key: str | None) -> IncomingWrite:
    """The write that a JSON body asks for. Raises InvalidRequest, MalformedBody."""
    return incoming_write(decode_json(body, NewWrite), idempotency_key)


def incoming_write(new: NewWrite, idempotency_key: str | None) -> IncomingWrite:
    """The write that an envelope asks for. Raises InvalidRequest."""
    operation, options = require_operation(new.operation), new.options()
    source: JsonRows | UploadReference | None = None
    facts: list[Any] = ["none"]
    match new.source:
        case RowsSource(rows=rows):
            text = bytes(rows)
            source = JsonRows(text=text)
            facts = ["rows", hashlib.sha256(text).hexdigest()]
        case UploadSource(upload_id=upload_id, format=form, compression=compression):
            source = UploadReference(upload_id=upload_id, format=form, gzip=compression is Compression.GZIP)
            facts = ["upload", upload_id, form.value, compression.value]
    return IncomingWrite(
        operation=operation,
        options=options,
        source=source,
        idempotency_key=idempotency_key,
        request_hash=request_hash(operation, options, "application/json", facts),
    )


def body_facts(content: bytes | StoredBody, *, gzip: bool) -> list[Any]:
    """What makes a raw body that body. A checksum of the stored bytes does: they are the client's own."""
    if isinstance(content, StoredBody):
        return [content.size_bytes, content.checksum, gzip]
    return [len(content), hashlib.sha256(content).hexdigest(), gzip]


def request_hash(operation: Operation, options: WriteOptions, media_type: str, facts: list[Any]) -> str:
    """SHA-256 over everything that makes a request that request, hexadecimal."""
    parts = [operation.value, media_type, *facts]
    if options != WriteOptions():
        # Options at their defaults leave no trace, so that keys outlive releases that add one.
        parts.append(msgspec.to_builtins(options))
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
