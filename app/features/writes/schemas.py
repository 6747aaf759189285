"""A write as a request sends it: the JSON envelope, or a raw body with its options in the query."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final

import msgspec

from app.features.writes.values import Body, IncomingWrite, UploadLink, UploadReferences
from app.http.json_body import decode_json
from app.http.openapi.openapi_components import INT64_MAX
from app.infra.files.received_body import StoredBody
from app.kernel.commit.write_options import (
    ChangeOrder,
    OnError,
    Overwrite,
    OverwriteScope,
    SaveMode,
    WriteOptions,
)
from app.kernel.format.commit_metadata import METADATA_KEY
from app.kernel.format.dataset import MergeMode
from app.kernel.format.definition.new_dataset import CreateWithRows, stated_schema
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.identifiers import PATTERN_END
from app.kernel.format.member_errors import EXPECTED, escaped
from app.kernel.format.operation import Operation
from app.kernel.format.rows.formats import Format


class Compression(str, Enum):
    """How the bytes of an upload are compressed."""

    NONE = "none"
    GZIP = "gzip"


class CreateUploadLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An upload whose bytes are sent to the storage."""

    size_bytes: Annotated[int, msgspec.Meta(ge=1, le=INT64_MAX)]
    """The number of bytes."""
    sha256: Annotated[
        str,
        msgspec.Meta(
            pattern=rf"^[0-9a-f]{{64}}{PATTERN_END}",
            examples=["9f86d081884c7d659a2feaa0c55ad015" * 2],
            extra_json_schema={EXPECTED: "64 hexadecimal digits in lower case"},
        ),
    ]
    """The SHA-256 of the bytes, hexadecimal."""


class UploadLinkResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bytes of an upload are sent. Who has the URL can send them, without an API key."""

    id: str
    """The id of the upload, for writes that name it."""
    method: Annotated[str, msgspec.Meta(examples=["PUT"])]
    """The method of the request."""
    url: Annotated[str, msgspec.Meta(examples=["https://bucket.s3.us-east-1.amazonaws.com/…"])]
    """The URL of the request, in the storage."""
    headers: dict[str, str]
    """The headers that the request must have."""
    expires_at: datetime
    """When the storage no longer accepts the request."""


def upload_link_response(link: UploadLink) -> UploadLinkResponse:
    """The JSON of a link."""
    return UploadLinkResponse(
        id=link.upload.id, method="PUT", url=link.url, headers=link.headers, expires_at=link.expires_at
    )


_METADATA_EXAMPLE: Final = {"run": "nightly-7"}
_MetadataText = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^{METADATA_KEY}:",
        examples=["run:nightly-7"],
        extra_json_schema={EXPECTED: "a key and a value in the form `key:value`"},
    ),
]

_ROWS = msgspec.Meta(
    extra_json_schema={
        "type": "array",
        "items": {"type": "object", "additionalProperties": True},
        "examples": [[{"id": 1, "amount": 120}]],
    }
)


class RowsSource(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="rows"
):
    """Rows in the request itself, one object each with the dataset's columns as members."""

    # Kept as text: the decoder of the dataset's schema reads the rows once.
    rows: Annotated[msgspec.Raw, _ROWS]
    """The rows."""


class UploadSource(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="upload"
):
    """Rows in an earlier upload."""

    upload_id: str
    """The id of the upload."""
    format: Format
    """The format of its bytes."""
    compression: Compression = Compression.NONE
    """How its bytes are compressed."""


UPLOADS_MAX: Final = 1_000


class UploadsSource(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="uploads"
):
    """Rows in several earlier uploads, which one write commits together."""

    upload_ids: Annotated[list[str], msgspec.Meta(min_length=1, max_length=UPLOADS_MAX)]
    """The ids of the uploads, in the order of their rows."""
    format: Format
    """The format of the bytes of each."""


class WriteMembers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write to a dataset that exists."""

    operation: Annotated[str, msgspec.Meta(extra_json_schema={"$ref": "#/components/schemas/Operation"})]
    """What is done with the rows."""
    source: RowsSource | UploadSource | UploadsSource | msgspec.UnsetType = msgspec.UNSET
    """The rows; required but for deletes by filter and by partition, which have none."""
    mode: SaveMode = SaveMode.APPEND
    """How an insert, upsert or bulk_insert treats existing rows."""
    overwrite: Overwrite | msgspec.UnsetType = msgspec.UNSET
    """Operation overwrite: what it replaces; the table by default."""
    where: str | msgspec.UnsetType = msgspec.UNSET
    """Operation delete: a condition; the rows for which it is true are deleted."""
    partitions: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Operation delete_partition: globs of partition paths."""
    on_error: OnError = OnError.FAIL
    """Whether bad records fail the write, or are quarantined."""
    merge_schema: bool = False
    """Whether columns that are new are added to the dataset."""
    explicit_cast: bool = False
    """With merge_schema: whether types may also change by a cast."""
    drop_duplicates: bool = False
    """Whether rows of an insert whose key is there are left out."""
    combine: bool = True
    """Whether rows of one key are merged before an insert or bulk_insert; false only without a record key."""
    sort_by: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Operation bulk_insert: the columns by which the rows of each file are sorted; by the record key by default."""
    order: ChangeOrder | msgspec.UnsetType = msgspec.UNSET
    """Operation changelog: whether changes are applied as they arrive, which is the default, or compared by the
    ordering field.
    """
    tombstone: bool = True
    """Operation delete, by key: whether tombstones of the keys are left; only with `deletes` of the dataset."""
    expected_version: int | msgspec.UnsetType = msgspec.UNSET
    """The write fails unless the dataset is at this version."""
    writer_id: str | msgspec.UnsetType = msgspec.UNSET
    """The stream that the batch is of."""
    batch_id: int | msgspec.UnsetType = msgspec.UNSET
    """The number of the batch, which grows from batch to batch of a stream: a batch commits once."""
    partition_done: bool = False
    """Whether the partitions that the write changes are marked as done in its commit."""
    metadata: Annotated[dict[str, str], msgspec.Meta(examples=[_METADATA_EXAMPLE])] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    """The metadata of its commit: texts by key, which its job, the timeline and the feed show."""

    def options(self) -> WriteOptions:
        """The options that the request sets. It has no member for `accept_late`, which is of redrives."""
        members = {
            name: value
            for name in WriteOptions.__struct_fields__
            if (value := getattr(self, name, msgspec.UNSET)) is not msgspec.UNSET
        }
        lists = {name: tuple(members.get(name, ())) for name in ("partitions", "sort_by")}
        return WriteOptions(**members | lists)


class CreateWrite(WriteMembers, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write."""

    create: CreateWithRows | msgspec.UnsetType = msgspec.UNSET
    """Registers the dataset, if there is none of the name in the path, with the columns of the rows."""


def from_envelope(body: bytes, idempotency_key: str | None) -> IncomingWrite:
    """The write of a JSON body. Raises InvalidRequest, MalformedBody."""
    new = decode_json(body, CreateWrite)
    return incoming_write(new, idempotency_key, None if new.create is msgspec.UNSET else new.create)


def incoming_write(
    new: WriteMembers, idempotency_key: str | None, create: CreateWithRows | None = None
) -> IncomingWrite:
    """The write of an envelope. Raises InvalidRequest."""
    operation, options = _operation(new.operation), new.options()
    source: Body | UploadReferences | None = None
    facts: list[Any] = ["none"]
    match new.source:
        case RowsSource(rows=rows):
            text = bytes(rows)
            source = Body(content=text, format=Format.JSON_ROWS, in_envelope=True)
            facts = ["rows", hashlib.sha256(text).hexdigest()]
        case UploadSource(upload_id=upload_id, format=form, compression=compression):
            gzip = compression is Compression.GZIP
            source = UploadReferences(upload_ids=(upload_id,), format=form, gzip=gzip)
            facts = ["upload", upload_id, form.value, compression.value]
        case UploadsSource(upload_ids=upload_ids, format=form):
            source = UploadReferences(upload_ids=tuple(upload_ids), format=form)
            facts = ["uploads", *upload_ids, form.value]
    return IncomingWrite(
        operation=operation,
        options=options,
        source=source,
        idempotency_key=idempotency_key,
        request_hash=request_hash(operation, options, "application/json", facts, create),
        rows_digest=rows_digest(operation, options, None if isinstance(source, UploadReferences) else facts),
        create=create,
    )


def _operation(text: str) -> Operation:
    """The operation called `text`. Raises InvalidRequest naming those there are."""
    try:
        return Operation(text)
    except ValueError:
        names = ", ".join(operation.value for operation in Operation)
        raise InvalidRequest(
            f"there is no operation {text!r}",
            [FieldError(pointer="/operation", detail=f"expected one of {names}")],
        ) from None


def body_facts(content: bytes | StoredBody, *, gzip: bool) -> list[Any]:
    """What identifies a raw body. A checksum of the stored bytes suffices, since they are those of the client."""
    if isinstance(content, StoredBody):
        return [content.size_bytes, content.checksum, gzip]
    return [len(content), hashlib.sha256(content).hexdigest(), gzip]


def rows_digest(operation: Operation, options: WriteOptions, facts: list[Any] | None) -> str | None:
    """SHA-256 over what identifies the rows of a batch, hexadecimal; None for a write that is not one.

    `facts`: of the body; None for uploads. A stream that repeats a batch may upload its rows in another division.
    """
    if options.batch_id is None or facts is None:
        return None
    parts = [operation.value, options.where, options.partitions, *facts]
    if not options.tombstone or options.order is not None:
        # The same rows have another effect. Defaults are not included, so that digests of earlier releases stay valid.
        parts.append([options.tombstone, options.order])
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def request_hash(
    operation: Operation,
    options: WriteOptions,
    media_type: str,
    facts: list[Any],
    create: CreateWithRows | None = None,
) -> str:
    """SHA-256 over everything that identifies a request, hexadecimal."""
    parts = [operation.value, media_type, *facts]
    if options != WriteOptions():
        # Options at their defaults are not included, so that keys stay valid in a release that adds an option.
        parts.append(msgspec.to_builtins(options))
    if create is not None:
        created = msgspec.to_builtins(create)
        if create.merge_mode is None:
            # Requests of the release that had no such member.
            del created["merge_mode"]
        parts.append({"create": created})
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


class WriteQueryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The query options of `create_write`, for raw bodies only: in a JSON body they are members.

    None has a default here: generated clients send defaults, which would then be sent beside JSON bodies too.
    """

    operation: Operation | None = None
    """What is done with the rows: `upsert` by default, `insert` on an append-only dataset."""
    mode: SaveMode | None = None
    """How an insert, upsert or bulk_insert treats existing rows."""
    overwrite_scope: OverwriteScope | None = None
    """Operation overwrite: what it replaces; `table` by default."""
    overwrite_where: str | None = None
    """The condition of scope `filter`."""
    on_error: OnError | None = None
    """Whether bad records fail the write, or are quarantined."""
    merge_schema: bool | None = None
    """Whether columns that are new are added to the dataset."""
    explicit_cast: bool | None = None
    """With merge_schema: whether types may also change by a cast."""
    drop_duplicates: bool | None = None
    """Whether rows of an insert whose key is there are left out."""
    combine: bool | None = None
    """Whether rows of one key are merged before an insert or bulk_insert; false only without a record key."""
    sort_by: list[str] | None = None
    """Operation bulk_insert: the columns by which the rows of each file are sorted, repeated for several; by the record
    key by default.
    """
    order: ChangeOrder | None = None
    """Operation changelog: whether changes are applied as they arrive, which is the default, or compared by the
    ordering field.
    """
    tombstone: bool | None = None
    """Operation delete, by key: whether tombstones of the keys are left; only with `deletes` of the dataset."""
    expected_version: int | None = None
    """The write fails unless the dataset is at this version."""
    writer_id: str | None = None
    """The stream that the batch is of."""
    batch_id: int | None = None
    """The number of the batch, which grows from batch to batch of a stream: a batch commits once."""
    partition_done: bool | None = None
    """Whether the partitions that the write changes are marked as done in its commit."""
    metadata: list[_MetadataText] | None = None
    """The metadata of its commit, in the form `key:value`; repeated for several keys."""
    create: bool | None = None
    """Whether the dataset is registered, if there is none of the name in the path, with the columns of the rows."""
    record_key: list[str] | None = None
    """With create: the fields that identify a row, repeated for several."""
    ordering_field: str | None = None
    """With create: of two rows with one key, the one with the larger value of this field wins."""
    partition_by: list[str] | None = None
    """With create: the partition fields, repeated for several."""
    schema: Annotated[str, msgspec.Meta(examples=["id:int64,price:decimal(9,2)"])] | None = None
    """With create: the columns and their types; by default those of the rows."""
    merge_mode: MergeMode | None = None
    """With create: what happens to rows with one key, as of a dataset."""

    def table(self) -> CreateWithRows | None:
        """The dataset to register, if there is none.

        Raises InvalidRequest for its members without `create`, InvalidDataset for a schema that cannot be read.
        """
        if not self.create:
            names = ("record_key", "ordering_field", "partition_by", "schema", "merge_mode")
            stray = [name for name in names if getattr(self, name)]
            if stray:
                what = "this belongs to a dataset that the write registers: set create=true too"
                raise InvalidRequest(what, [FieldError(pointer=f"/{name}", detail=what) for name in stray])
            return None
        return CreateWithRows(
            record_key=self.record_key or [],
            ordering_field=self.ordering_field,
            partition_by=self.partition_by or [],
            schema=None if self.schema is None else stated_schema(self.schema),
            merge_mode=self.merge_mode,
        )

    def options(self) -> WriteOptions:
        """The options as a JSON body would set them. Raises InvalidRequest for a key of metadata that is repeated."""
        overwrite = None
        if self.overwrite_scope is not None or self.overwrite_where is not None:
            scope = self.overwrite_scope or OverwriteScope.TABLE
            overwrite = Overwrite(scope=scope, where=self.overwrite_where)
        names = set(self.__struct_fields__) & set(WriteOptions.__struct_fields__)
        members = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.metadata is not None:
            members["metadata"] = _metadata(self.metadata)
        members["sort_by"] = tuple(self.sort_by or ())
        return WriteOptions(**members, overwrite=overwrite)


def _metadata(texts: Sequence[str]) -> dict[str, str]:
    """Raises InvalidRequest."""
    metadata: dict[str, str] = {}
    for text in texts:
        key, _, value = text.partition(":")
        if key in metadata:
            what = "expected each key once"
            raise InvalidRequest(
                f"metadata: {what}", [FieldError(pointer=f"/metadata/{escaped(key)}", detail=what)]
            )
        metadata[key] = value
    return metadata
