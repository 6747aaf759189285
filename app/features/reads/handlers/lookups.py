"""Rows by key: one of them by its path, or many in one request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from litestar import get, post
from litestar.params import JSONBody, PathParameter

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.changes.position_parameters import PositionText, parse_position
from app.core.changes.positions import StartingPosition
from app.core.changes.schemas import ChangeResponse, Row
from app.core.changes.values import ChangePage
from app.features.reads.errors import RowNotFound
from app.features.reads.handlers.corrected import CORRECTED_HEADER, corrected_header, corrected_member
from app.features.reads.service.lookup import KEYS_MAX, RowLookup
from app.features.reads.values import FoundKeys, KeyQuery
from app.http.auth import needs
from app.http.body_stream import JSON
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.openapi_components import INT64_MAX
from app.http.openapi.operation_docs import documented
from app.http.request import ApiRequest
from app.http.response import ApiResponse
from app.kernel.changelog.delivery_forms import one_array
from app.kernel.codecs.json.encode import encode_changes_json, encode_rows_json, encode_rows_ndjson
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.index.live_key import KeyTombstone
from app.kernel.format.partition.members import member_path
from app.kernel.format.schema.types import JsonForm, stored_type
from app.kernel.sql.conditions.row_access import RowAccess

_TAGS: Final = ["rows"]
_BODY_BYTES_MAX: Final = 1024 * 1024
_HISTORY_MAX: Final = 1_000
_HEADERS: Final = {
    "Headwater-Version": "The version that was read.",
    "Headwater-Schema-Id": "The schema that the dataset had at that version.",
    **CORRECTED_HEADER,
}

KeyText: TypeAlias = Annotated[
    str,
    PathParameter(
        description="The values of the key fields in the order of `record_key`, each percent-encoded, separated by "
        "commas; in the text forms of JSON."
    ),
]
_Version: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
_Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class LookupOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is returned of the row of a key."""

    version: _Version | None = None
    """The version to read; the latest by default."""
    as_of: _Time | None = None
    """An RFC 3339 time: reads the last version committed by then."""
    tag: str | None = None
    """The name of a tag or savepoint: reads the version that has it."""
    columns: tuple[str, ...] | None = None
    """The columns of the row, comma-separated or repeated; all by default."""
    history: bool = False
    """Adds the changes of the key up to the version, in the order of the feed."""
    since: PositionText = StartingPosition.EARLIEST.value
    """Of the history: the position to start at. The first change that is kept by default."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=_HISTORY_MAX)] = 100
    """Of the history: how many changes to return at most; one more where that keeps a `-C` with its `+C`."""


class FoundRow(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a key. Without a row, which only a history may be, its members are null."""

    row: Row | None
    """The columns of the row."""
    version: int | None
    """The version that set the values of the row."""
    offset: Annotated[int, msgspec.Meta(examples=[120])] | None
    """The change that did; null where rows do not record it, as under most producers but `full`."""
    corrected: bool | msgspec.UnsetType = msgspec.UNSET
    """Of an earlier version: whether a later commit has corrected the row. Absent for the latest version, and if it is
    not known: the feed does not record or keep it, or too many changes follow.
    """
    changes: list[ChangeResponse] | msgspec.UnsetType = msgspec.UNSET
    """With `history`: changes of the key, in the order of the feed."""
    next_since: int | msgspec.UnsetType = msgspec.UNSET
    """With `history`: the `since` of the next page of it."""
    complete: bool | msgspec.UnsetType = msgspec.UNSET
    """With `history`: whether there are no more changes up to the version."""


class LookupKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of the rows to find."""

    keys: Annotated[
        list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=KEYS_MAX, examples=[[{"id": 1}]])
    ]
    """The keys: objects of the key fields."""
    version: _Version | None = None
    """The version to read; by default the latest."""
    as_of: _Time | None = None
    """A time: reads the last version committed by then."""
    tag: str | None = None
    """The name of a tag or savepoint: reads the version that has it."""
    columns: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    """The columns of the rows, in this order; by default all."""


class LookupItem(msgspec.Struct, frozen=True, kw_only=True):
    """A requested key, and its row; null without one."""

    key: Row
    """The key fields."""
    row: Row | None
    """The columns of the row."""
    version: int | None
    """The version that set the values of the row."""
    offset: Annotated[int, msgspec.Meta(examples=[120])] | None
    """The change that did; null where rows do not record it, as under most producers but `full`."""


class LookupResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of the requested keys."""

    items: list[LookupItem]
    """One for each requested key, in their order."""
    version: int
    """The version that was read."""
    schema_id: Annotated[int, msgspec.Meta(examples=[1])]
    """The schema that the dataset had at that version."""
    corrected: bool | msgspec.UnsetType = msgspec.UNSET
    """Of an earlier version: whether later commits have corrected one of the rows. Absent for the latest version, and
    if it is not known: the feed does not record or keep it, or too many changes follow.
    """


@get(
    "/datasets/{dataset:str}/rows/{key:path}",
    operation_id="get_row",
    summary="Get the row of a key",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(
        description="The row.", content={JSON: FoundRow}, headers=_HEADERS, problems=[403, 409, 410, 422]
    ),
)
async def get_row(
    request: ApiRequest,
    key: KeyText,
    options: Provided[LookupOptions],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    row_lookup: Provided[RowLookup],
    page_threads: Provided[Threads],
) -> ApiResponse[bytes]:
    """Finds the row of a key, now or back in time, in the index that writes use.

    With `history` it also returns the changes of the key, and a key without a row is no error.
    """
    text = _key_object(path_dataset.definition, _sent_key(request, key))
    query = KeyQuery(version=options.version, as_of=options.as_of, tag=options.tag, columns=options.columns)

    def read() -> ApiResponse[bytes]:
        keys = row_lookup.keys(path_dataset, [text], "/key")
        rows = row_lookup.find(path_dataset, keys, query, access)
        row = encode_rows_ndjson(_items(rows))[:-2] + corrected_member(rows.corrected)
        if options.history:
            start = parse_position(options.since)
            page = row_lookup.history(path_dataset, keys, start, options.limit, rows.version, access)
            row += b"," + _history(page)
        elif rows.row_versions.null_count:
            raise _not_found(
                text, rows.version, row_lookup.tombstone(path_dataset, keys, rows.version, access)
            )
        return ApiResponse(row + b"}", media_type=JSON, headers=_headers(rows))

    return await page_threads.run(read)


@post(
    "/datasets/{dataset:str}/rows/lookup",
    operation_id="lookup_rows",
    summary="Find rows by their keys",
    tags=_TAGS,
    status_code=200,
    request_max_body_size=_BODY_BYTES_MAX,
    # It changes nothing.
    opt=needs(KeyScope.READ, in_part=True)
    | documented(
        description="The rows.", content={JSON: LookupResponse}, headers=_HEADERS, problems=[403, 410, 422]
    ),
)
async def lookup_rows(
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    row_lookup: Provided[RowLookup],
    page_threads: Provided[Threads],
    data: JSONBody[LookupKeys],
) -> ApiResponse[bytes]:
    """Finds the rows of up to 1,000 keys, now or back in time. All rows are of one version."""
    query = KeyQuery(version=data.version, as_of=data.as_of, tag=data.tag, columns=data.columns)

    def read() -> ApiResponse[bytes]:
        keys = row_lookup.keys(
            path_dataset, [msgspec.json.encode(each).decode() for each in data.keys], "/keys"
        )
        rows = row_lookup.find(path_dataset, keys, query, access)
        items = encode_rows_json(_items(rows).add_column(0, "key", _structs(keys)))
        state = b'"version":%d,"schema_id":%d' % (rows.version, rows.schema_id)
        state += corrected_member(rows.corrected)
        return ApiResponse(
            b'{"items":' + items + b"," + state + b"}", media_type=JSON, headers=_headers(rows)
        )

    return await page_threads.run(read)


def _not_found(text: str, version: int, tombstone: KeyTombstone | None) -> RowNotFound:
    detail = f"no row has the key {text} at version {version}"
    if tombstone is None:
        return RowNotFound(detail, version=version)
    value = msgspec.json.encode(tombstone.ordering_value).decode()
    return RowNotFound(
        f"{detail}: rows with an ordering value less than {value} are kept away by a delete at version "
        f"{tombstone.version}",
        version=version,
        tombstone=msgspec.to_builtins(tombstone),
    )


def _headers(rows: FoundKeys) -> dict[str, str]:
    headers = {"Headwater-Version": str(rows.version), "Headwater-Schema-Id": str(rows.schema_id)}
    return headers | corrected_header(rows.corrected)


def _items(rows: FoundKeys) -> pa.Table:
    return pa.table(
        {
            "row": _structs(rows.rows, absent=rows.row_versions.is_null()),
            "version": rows.row_versions,
            "offset": rows.row_offsets,
        }
    )


def _structs(rows: pa.Table, absent: pa.ChunkedArray | None = None) -> pa.StructArray:
    """The rows as one column. `absent`: those that are null (bool)."""
    return pa.StructArray.from_arrays(
        [one_array(column) for column in rows.columns],
        fields=[field.with_nullable(True) for field in rows.schema],
        mask=None if absent is None else one_array(absent),
    )


def _history(page: ChangePage) -> bytes:
    changes = encode_changes_json(page.events.table, as_ndjson=False)
    complete = b"true" if page.complete else b"false"
    return b'"changes":%b,"next_since":%d,"complete":%b' % (changes, page.next_since, complete)


def _sent_key(request: ApiRequest, key: str) -> str:
    """The key as it was sent: percent-encoded, so that a comma within a value does not separate values."""
    raw = request.scope.get("raw_path")
    return raw.decode("latin-1").rpartition("/")[2] if raw else key


def _key_object(definition: DatasetDefinition, key_text: str) -> str:
    """The key as the JSON object of its fields. Raises InvalidRequest."""
    names = definition.record_key
    texts = [unquote(text) for text in key_text.split(",")] if len(names) > 1 else [unquote(key_text)]
    if names and len(texts) != len(names):
        detail = f"expected the values of {', '.join(names)}, separated by commas; got {len(texts)}"
        raise InvalidRequest(f"key: {detail}", [FieldError(pointer="/key", detail=detail)])
    key_object: dict[str, Any] = {}
    for name, text in zip(names, texts, strict=False):
        *structs, last = path = member_path(name, definition.schema.names())
        members = key_object
        for struct in structs:
            members = members.setdefault(struct, {})
        members[last] = _value(definition, path, text)
    return msgspec.json.encode(key_object).decode()


def _value(definition: DatasetDefinition, path: Sequence[str], text: str) -> int | str:
    """A value as in JSON: numbers and booleans as they are, all others as a string."""
    kind = definition.schema.field(path[0]).to_arrow().type
    for name in path[1:]:
        kind = kind.field(name).type
    flat = stored_type(kind)
    is_plain = flat is not None and flat.json_form in (JsonForm.BOOLEAN, JsonForm.INTEGER)
    try:
        plain = msgspec.json.decode(text) if is_plain else None
    except msgspec.DecodeError:
        plain = None
    return plain if isinstance(plain, int) else text
