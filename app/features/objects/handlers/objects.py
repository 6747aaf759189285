"""Objects and listings of the bucket that all tables are in. Nothing writes to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Never, cast
from urllib.parse import unquote_to_bytes

from litestar import Response, get, route
from litestar.response import Stream

from app.access.errors import PreconditionFailed
from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.values import Dataset
from app.features.objects.errors import TablesReadOnly
from app.features.objects.handlers.credentials import signed_request
from app.features.objects.handlers.errors import REQUEST_ID_FIELD
from app.features.objects.handlers.streams import ObjectStreams
from app.features.objects.ports import ObjectContent, ObjectTree, ServedTable
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
from app.infra.sharing.next_flight import NextFlight
from app.kernel.format.errors import InvalidRequest

TABLE_KEYS: Final = "table_keys"
"""The name of the scheme of the credentials."""
_PATHS: Final = [f"/{BUCKET}", f"/{BUCKET}/{{object_path:path}}"]
_OPTIONS: Final[Mapping[str, Any]] = {
    SCHEME: TABLE_KEYS,
    RATE: "object_requests_per_second",
    ANY_PARAMETERS: True,
}


@get(_PATHS, operation_id="read_object", opt={**_OPTIONS, **needs(KeyScope.READ)})
async def read_object(
    request: ApiRequest,
    principal: Provided[Principal],
    dataset_lookups: Provided[NextFlight[tuple[str, str], Never, Dataset]],
    object_trees: Provided[Mapping[str, ObjectTree]],
    object_streams: Provided[ObjectStreams],
) -> Response[bytes] | Stream:
    """An object, a part of it, a listing, or the region of the bucket."""
    _check_body(request)
    key = cast(TableKey, request.auth)
    dataset = await dataset_lookups.join((principal.tenant_id, key.dataset_id))
    request.scope["state"][DATASET_NAME] = dataset.definition.name
    objects = TableObjects(trees=object_trees)
    table = objects.check_key(key, principal, dataset)
    object_key = _object_key(request)
    if not object_key:
        return await _bucket(request, table, objects, object_streams)
    check_parameters(request.query_params)
    content = await object_streams.threads.run(objects.find, table, object_key)
    return await _object(request, dataset, content, object_streams)


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
    path = unquote_to_bytes(signed_request(request.scope).path)
    return path.removeprefix(f"/{BUCKET}".encode()).removeprefix(b"/")


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
    fields = _fields(request)
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


async def _object(
    request: ApiRequest, dataset: Dataset, content: ObjectContent, streams: ObjectStreams
) -> Response[bytes] | Stream:
    tag = f'"{content.etag}"'
    headers = {
        **_fields(request),
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-transform",
        # A path has the same bytes for ever, so any fixed time is true.
        "Last-Modified": f"{dataset.created_at:%a, %d %b %Y %H:%M:%S} GMT",
    }
    if _names(request, "if-match", tag) is False:
        raise PreconditionFailed("the object has another ETag")
    if _names(request, "if-none-match", tag):
        return ApiResponse(b"", status_code=304, headers=headers)
    size = content.size_bytes
    if is_head(request.scope):
        # Nothing is read: the size of an object is known before its bytes are.
        return ApiResponse(
            b"", media_type=content.media_type, headers={**headers, "Content-Length": str(size)}
        )
    part = requested_range(request.headers.get("range"), request.headers.get("if-range"), size, tag)
    span = range(size) if part is None else part
    headers["Content-Length"] = str(len(span))
    if part is not None:
        headers["Content-Range"] = f"bytes {part[0]}-{part[-1]}/{size}"
    status = 200 if part is None else 206
    return await streams.send(dataset.tenant_id, content, span, status, headers)


def _fields(request: ApiRequest) -> dict[str, str]:
    return {REQUEST_ID_FIELD: str(request.scope["state"][REQUEST_ID])}


def _names(request: ApiRequest, field: str, tag: str) -> bool | None:
    """Whether the field names the ETag; None without the field."""
    text = request.headers.get(field)
    if text is None:
        return None
    tags = [each.strip().removeprefix("W/") for each in text.split(",")]
    return "*" in tags or tag in tags or tag.strip('"') in tags
