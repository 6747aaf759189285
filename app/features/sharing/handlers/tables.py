"""Tables of Delta Sharing: their version, metadata, files and changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from litestar import Response, get, post
from litestar.params import JSONBody, QueryParameter

from app.features.sharing.handlers.listings import READS, SCHEMA_PATH
from app.features.sharing.protocol import TableQuery
from app.features.sharing.service.table_changes import ChangeRange, TableChanges
from app.features.sharing.service.table_forms import CAPABILITIES, TableRead
from app.features.sharing.service.table_queries import FileHints, TableLines, TableQueries, TableVersion
from app.features.sharing.values import SharedTable
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.response import ApiResponse
from app.kernel.format.errors import InvalidRequest

VERSION_HEADER: Final = "Delta-Table-Version"
_NDJSON: Final = "application/x-ndjson; charset=utf-8"
_BODY_BYTES_MAX: Final = 1024 * 1024
_TABLE_PATH: Final = f"{SCHEMA_PATH}/tables/{{table_name:str}}"


@get([_TABLE_PATH, f"{_TABLE_PATH}/version"], operation_id="sharing_table_version", opt=READS)
async def get_version(
    shared_table: Provided[SharedTable],
    table_queries: Provided[TableQueries],
    threads: Provided[Threads],
    starting_timestamp: Annotated[str, QueryParameter(name="startingTimestamp")] = "",
) -> Response[bytes]:
    """Returns the latest version, or the first since a time, in a header. Raises NotFound, InvalidRequest."""
    since = _time("startingTimestamp", starting_timestamp)
    version = await threads.run(table_queries.version, shared_table, since)
    return ApiResponse(b"", headers={VERSION_HEADER: str(version)})


@get(f"{_TABLE_PATH}/metadata", operation_id="sharing_table_metadata", opt=READS)
async def get_metadata(
    table_read: Provided[TableRead],
    table_queries: Provided[TableQueries],
    threads: Provided[Threads],
    version: Annotated[int | None, QueryParameter()] = None,
    timestamp: Annotated[str, QueryParameter()] = "",
) -> Response[bytes]:
    """Returns the protocol and the metadata of a table. Raises NotFound, InvalidRequest, VersionExpired."""
    at = TableVersion(version=version, timestamp=_time("timestamp", timestamp))
    return _response(await threads.run(table_queries.metadata, table_read, at))


@post(
    f"{_TABLE_PATH}/query",
    operation_id="sharing_table_query",
    status_code=200,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=READS,
)
async def query_table(
    table_read: Provided[TableRead],
    table_queries: Provided[TableQueries],
    threads: Provided[Threads],
    data: JSONBody[TableQuery],
) -> Response[bytes]:
    """Returns links to the files of a table. Raises NotFound, InvalidRequest, VersionExpired, RenderingUnderWay."""
    if data.starting_version is not None:
        raise InvalidRequest.of_member(
            "startingVersion", "expected no startingVersion: changes are those of GET …/changes"
        )
    if data.limit_hint is not None and data.limit_hint < 0:
        raise InvalidRequest.of_member("limitHint", "expected 0 or more")
    at = TableVersion(version=data.version, timestamp=_time("timestamp", data.timestamp or ""))
    hints = FileHints(
        predicates=data.predicate_hints or (),
        json_predicate=data.json_predicate_hints,
        limit=data.limit_hint,
    )
    return _response(await threads.run(table_queries.files, table_read, at, hints))


@get(f"{_TABLE_PATH}/changes", operation_id="sharing_table_changes", opt=READS)
async def list_changes(
    table_read: Provided[TableRead],
    table_changes: Provided[TableChanges],
    threads: Provided[Threads],
    starting_version: Annotated[int | None, QueryParameter(name="startingVersion")] = None,
    ending_version: Annotated[int | None, QueryParameter(name="endingVersion")] = None,
    starting_timestamp: Annotated[str, QueryParameter(name="startingTimestamp")] = "",
    ending_timestamp: Annotated[str, QueryParameter(name="endingTimestamp")] = "",
) -> Response[bytes]:
    """Returns links to files with the changes of versions. Raises NotFound, InvalidRequest, OffsetExpired,
    RestrictedGrant, RenderingUnderWay.
    """
    span = ChangeRange(
        first_version=starting_version,
        last_version=ending_version,
        since=_time("startingTimestamp", starting_timestamp),
        until=_time("endingTimestamp", ending_timestamp),
    )
    return _response(await threads.run(table_changes.read, table_read, span))


def _response(lines: TableLines) -> Response[bytes]:
    headers = {
        VERSION_HEADER: str(lines.version),
        CAPABILITIES: f"responseformat={lines.response_format.value}",
    }
    return ApiResponse(b"\n".join([*lines.lines, b""]), media_type=_NDJSON, headers=headers)


def _time(member: str, text: str) -> datetime | None:
    """A time of the protocol, without a zone in UTC; None for an empty text. Raises InvalidRequest."""
    if not text:
        return None
    try:
        moment = msgspec.convert(text.strip(), datetime)
    except msgspec.ValidationError:
        raise InvalidRequest.of_member(member, "expected a time like 2026-01-31T00:00:00Z") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


HANDLERS: Final = (get_version, get_metadata, query_table, list_changes)
