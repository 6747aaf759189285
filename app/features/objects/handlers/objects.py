"""Objects and listings of the bucket that all tables are in. Nothing writes to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Never, cast
from urllib.parse import unquote_to_bytes

from litestar import Response, get, route
from litestar.types import ASGIApp

from app.access.errors import PreconditionFailed
from app.access.tenants.values import KeyScope
from app.features.objects.errors import TablesReadOnly
from app.features.objects.handlers.credentials import path_as_sent
from app.features.objects.handlers.errors import REQUEST_ID_FIELD
from app.features.objects.handlers.lookups import DatasetLookups, ObjectLookup, ObjectLookups
from app.features.objects.handlers.streams import ObjectResponse, ObjectStreams
from app.features.objects.ports import ObjectTree, ServedTable
from app.features.objects.schemas import (
    XML,
    check_parameters,
    list_document,
    list_options,
    location_document,
)
from app.features.objects.service.keys import TableKey
from app.features.objects.service.objects import TableObjects
from app.features.objects.service.signatures import EMPTY, UNSIGNED
from app.features.objects.values import BUCKET, REGION
from app.http.auth import PUBLIC, needs
from app.http.dependencies import Provided
from app.http.parameters.byte_range import requested_range
from app.http.parameters.query_parameters import ANY_PARAMETERS
from app.http.problems import REQUEST_ID
from app.http.protocols import RATE, SCHEME, is_head
from app.http.request import DATASET_NAME, ApiRequest
from app.http.response import ApiResponse
from app.kernel.format.errors import InvalidRequest

TABLE_KEYS: Final = "table_keys"
"""The name of the scheme of the credentials."""
_PATHS: Final = [f"/{BUCKET}", f"/{BUCKET}/{{object_path:path}}"]
_BUCKET_PATH: Final = f"/{BUCKET}".encode()
_REQUEST_ID_NAME: Final = REQUEST_ID_FIELD.encode()
_OPTIONS: Final[Mapping[str, Any]] = {
    SCHEME: TABLE_KEYS,
    RATE: "object_requests_per_second",
    ANY_PARAMETERS: True,
}


@get(_PATHS, operation_id="read_object", opt={**_OPTIONS, **needs(KeyScope.READ)})
async def read_object(
    request: ApiRequest,
    dataset_lookups: Provided[DatasetLookups],
    object_trees: Provided[Mapping[str, ObjectTree]],
    object_lookups: Provided[ObjectLookups],
    object_streams: Provided[ObjectStreams],
) -> ASGIApp:
    """An object, a part of it, a listing, or the region of the bucket."""
    _check_body(request)
    key, principal = cast(TableKey, request.auth), request.user
    object_key = _object_key(request)
    state = request.scope["state"]
    if not object_key:
        table = await object_lookups.table(key, principal, dataset_lookups, object_trees)
        state[DATASET_NAME] = table.dataset.definition.name
        page = await _bucket(request, table, TableObjects(trees=object_trees), object_streams)
        return page.to_asgi_response(app=None, request=request)
    check_parameters(request.query_params)
    lookup = await object_lookups.object(key, principal, object_key, dataset_lookups, object_trees)
    state[DATASET_NAME] = lookup.dataset.definition.name
    return await _object(request, lookup, object_streams)


@route(
    _PATHS,
    http_method=["PUT", "POST", "DELETE", "PATCH"],
    operation_id="write_object",
    opt={**_OPTIONS, PUBLIC: True},
)
async def write_object() -> Never:
    """Raises TablesReadOnly for every client."""
    raise TablesReadOnly(
        "tables are read only in this protocol: send rows to POST /datasets/{dataset}/writes, each write is a version "
        "of the table"
    )


def _object_key(request: ApiRequest) -> bytes:
    """The key of the object below the bucket, decoded; empty for the bucket."""
    path = unquote_to_bytes(path_as_sent(request.scope))
    return path.removeprefix(_BUCKET_PATH).removeprefix(b"/")


def _check_body(request: ApiRequest) -> None:
    """Raises InvalidRequest if the client states a body, or pieces of one that are signed one by one."""
    hashes = request.headers.getall("x-amz-content-sha256", [])
    if any(each not in (EMPTY, UNSIGNED) for each in hashes):
        raise InvalidRequest(
            f"x-amz-content-sha256 has to be {UNSIGNED}, or the hash of an empty body: reads have no body, and "
            "signatures of pieces (STREAMING-…) are for writes, which are not offered"
        )


async def _bucket(
    request: ApiRequest, table: ServedTable, objects: TableObjects, streams: ObjectStreams
) -> Response[bytes]:
    fields = {REQUEST_ID_FIELD: str(request.scope["state"][REQUEST_ID])}
    if is_head(request.scope):
        return ApiResponse(b"", media_type=XML, headers={**fields, "x-amz-bucket-region": REGION})
    if "location" in request.query_params:
        check_parameters(request.query_params, ["location"])
        return ApiResponse(location_document(), media_type=XML, headers=fields)
    options = list_options(request.query_params)
    page = await streams.threads.run(
        objects.page,
        table,
        prefix=options.prefix,
        delimiter=options.delimiter,
        after=options.after,
        keys_max=options.keys_max,
    )
    return ApiResponse(list_document(options, page, table.dataset.created_at), media_type=XML, headers=fields)


async def _object(request: ApiRequest, lookup: ObjectLookup, streams: ObjectStreams) -> ObjectResponse:
    content, headers, tag = lookup.content, request.headers, lookup.tag
    if _names(headers.get("if-match"), tag) is False:
        raise PreconditionFailed("the object has another ETag")
    fields = [*lookup.fields, (_REQUEST_ID_NAME, request.scope["state"][REQUEST_ID].encode())]
    if _names(headers.get("if-none-match"), tag):
        return ObjectResponse(304, fields)
    fields.append((b"content-type", content.media_type.encode()))
    size = content.size_bytes
    if is_head(request.scope):
        # Nothing is read: the size of an object is known before its bytes are.
        return ObjectResponse(200, [*fields, _length(size)])
    part = requested_range(headers.get("range"), headers.get("if-range"), size, tag)
    if part is None:
        return await streams.response(200, [*fields, _length(size)], lookup, range(size))
    fields += [_length(len(part)), (b"content-range", b"bytes %d-%d/%d" % (part[0], part[-1], size))]
    return await streams.response(206, fields, lookup, part)


def _length(count: int) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % count


def _names(text: str | None, tag: str) -> bool | None:
    """Whether the text of a field names the ETag; None without the field."""
    if text is None:
        return None
    tags = [each.strip().removeprefix("W/") for each in text.split(",")]
    return "*" in tags or tag in tags or tag.strip('"') in tags
