"""Tables: load one, renew the keys of its files, and take what clients report of their scans."""

from __future__ import annotations

from typing import Annotated, Final

from litestar import Response, get, post
from litestar.params import HeaderParameter, QueryParameter

from app.access.tenants.values import Principal
from app.core.catalog.values import Dataset
from app.features.iceberg.handlers.catalogue import READS, below
from app.features.iceberg.schemas import LoadedCredentials, StorageCredential
from app.features.iceberg.service.loaded_tables import LoadedTables, TableRequest
from app.features.iceberg.service.response_pieces import gzip_of, text_of
from app.features.iceberg.values import SnapshotSelection
from app.features.objects.ports import ServedTable
from app.http.body_stream import JSON, read_body
from app.http.dependencies import Provided
from app.http.limits.threads import PageThreads, Threads
from app.http.protocols import is_head
from app.http.request import ApiRequest
from app.http.response import ApiResponse

_REPORT_BYTES_MAX: Final = 1024 * 1024
_TABLE: Final = ("tables", "{dataset:str}")


@get(below(*_TABLE), operation_id="iceberg_table", opt=READS)
async def load_table(
    request: ApiRequest,
    served_table: Provided[ServedTable],
    loaded_tables: Provided[LoadedTables],
    principal: Provided[Principal],
    public_url: Provided[str],
    table_threads: Provided[PageThreads],
    snapshots: Annotated[str, QueryParameter()] = "",
    if_none_match: Annotated[str, HeaderParameter(name="If-None-Match")] = "",
) -> Response[bytes]:
    """Returns the metadata of a table with a key for its files; nothing for HEAD. Raises what `load` does."""
    if is_head(request.scope):
        return ApiResponse(b"", status_code=204)
    load = TableRequest(
        principal=principal,
        url=public_url,
        selection=_selection(snapshots),
        entity_tags=if_none_match,
    )
    takes_gzip = _takes_gzip(request)

    def body_of() -> tuple[str, bytes]:
        table = loaded_tables.load(served_table, load)
        body = gzip_of if takes_gzip else text_of
        return table.entity_tag, body(table.pieces) if table.pieces else b""

    entity_tag, body = await table_threads.run(body_of)
    headers = {"ETag": entity_tag, "Vary": "Accept-Encoding"}
    if not body:
        return ApiResponse(b"", status_code=304, headers=headers)
    if takes_gzip:
        headers["Content-Encoding"] = "gzip"
    return ApiResponse(body, media_type=JSON, headers=headers)


@get(below(*_TABLE, "credentials"), operation_id="iceberg_table_credentials", opt=READS)
async def load_credentials(
    served_table: Provided[ServedTable],
    loaded_tables: Provided[LoadedTables],
    principal: Provided[Principal],
    public_url: Provided[str],
    threads: Provided[Threads],
) -> LoadedCredentials:
    """Returns a fresh key for the files of a table."""
    load = TableRequest(principal=principal, url=public_url)
    configs = await threads.run(loaded_tables.credentials, served_table, load)
    return LoadedCredentials(
        storage_credentials=tuple(
            [StorageCredential(prefix=prefix, config=config) for prefix, config in configs.items()]
        )
    )


@post(below(*_TABLE, "metrics"), operation_id="iceberg_table_metrics", status_code=204, opt=READS)
async def report_metrics(request: ApiRequest, path_dataset: Provided[Dataset]) -> None:  # noqa: ARG001  (exists)
    """Takes a report of a scan. It counts as a request of the key, and is not kept."""
    await read_body(request, _REPORT_BYTES_MAX)


def _selection(text: str) -> SnapshotSelection:
    """What the client requests. Others than the two words of the protocol are the default, as of later releases."""
    return {"all": SnapshotSelection.ALL, "refs": SnapshotSelection.REFS}.get(text, SnapshotSelection.LATEST)


def _takes_gzip(request: ApiRequest) -> bool:
    codings = [part.partition(";") for part in request.headers.get("accept-encoding", "").split(",")]
    return any(
        name.strip().lower() in ("gzip", "*") and weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.000")
        for name, _, weight in codings
    )


HANDLERS: Final = (load_table, load_credentials, report_metrics)
