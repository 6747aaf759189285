"""Writes: accept rows, and wait for their job if the client likes to."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from litestar import Response, post
from litestar.params import QueryParameter

from app.catalog.values import Dataset
from app.codecs import Format
from app.commit.write_options import OnError, Overwrite, OverwriteScope, SaveMode, WriteOptions
from app.files.received_body import StoredBody
from app.format.errors import FieldError, InvalidRequest
from app.format.operation import Operation
from app.format.rows.formats import MEDIA_TYPES
from app.http.body_stream import (
    JSON,
    is_gzip,
    media_type_of,
    read_body,
    refuse_announced,
    refuse_encoding,
    refused_media_type,
    spool_body,
)
from app.http.context import ApiRequest, Services, actor_of, services_of, tenant_of
from app.http.headers import idempotency_key, preference
from app.http.openapi.operation_docs import BINARY, documented
from app.http.query_parameters import DatasetReference
from app.http.table_response import ARROW_STREAM
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.writes.handlers.write_request import NewWrite, body_facts, from_envelope, request_hash
from app.writes.service.accept import Body, IncomingWrite

_ACCEPTED: Final = (JSON, *MEDIA_TYPES)
_RAW_DOCUMENTED: Final = ("application/x-ndjson", "text/csv", ARROW_STREAM, "application/vnd.apache.parquet")


@post(
    "/datasets/{dataset:str}/writes",
    operation_id="create_write",
    summary="Write rows",
    tags=["writes"],
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewWrite, **dict.fromkeys(_RAW_DOCUMENTED, BINARY)},
        request_headers=ACCEPTING_HEADERS,
        problems=[400, 404, 409, 413, 415, 422, 507],
    ),
)
async def create_write(
    request: ApiRequest,
    dataset: DatasetReference,
    operation: Annotated[
        Operation | None,
        QueryParameter(
            description="For raw bodies only: what to do with the rows; `upsert` unless said, `insert` on an "
            "append-only dataset. In a JSON body it is a member, as the other options are."
        ),
    ] = None,
    mode: Annotated[
        SaveMode | None,
        QueryParameter(description="What an insert, upsert or bulk_insert does about data that are there."),
    ] = None,
    overwrite_scope: Annotated[
        OverwriteScope | None, QueryParameter(description="What an overwrite replaces; `table` unless said.")
    ] = None,
    overwrite_where: Annotated[
        str | None, QueryParameter(description="The filter of scope `filter`.")
    ] = None,
    on_error: Annotated[
        OnError | None, QueryParameter(description="What becomes of the write if it has bad records.")
    ] = None,
    merge_schema: Annotated[
        bool | None, QueryParameter(description="Columns that are new are added to the dataset.")
    ] = None,
    explicit_cast: Annotated[
        bool | None, QueryParameter(description="With merge_schema: types may also change by a cast.")
    ] = None,
    drop_duplicates: Annotated[
        bool | None, QueryParameter(description="Rows of an insert whose key is there are left out.")
    ] = None,
    expected_version: Annotated[
        int | None, QueryParameter(description="The write fails unless the dataset is at this version.")
    ] = None,
    writer_id: Annotated[str | None, QueryParameter(description="The stream that a batch is of.")] = None,
    batch_id: Annotated[
        int | None, QueryParameter(description="The number of the batch: a batch commits once.")
    ] = None,
) -> Response[Any]:
    """Accepts rows as JSON, or raw as NDJSON, CSV, an Arrow stream or Parquet, each also with gzip encoding.

    Small JSON, NDJSON and CSV bodies are checked at once, larger, Arrow and Parquet ones by their job.
    """
    services = services_of(request)
    preferred = preference(request.headers)
    key = idempotency_key(request.headers)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    with services.in_flight.reserved(found.tenant_id, found.id, key):
        if media_type_of(request) == JSON:
            incoming = await _from_json(request, services, key)
        else:
            options = _options(
                overwrite_scope,
                overwrite_where,
                mode=mode,
                on_error=on_error,
                merge_schema=merge_schema,
                explicit_cast=explicit_cast,
                drop_duplicates=drop_duplicates,
                expected_version=expected_version,
                writer_id=writer_id,
                batch_id=batch_id,
            )
            incoming = await _from_raw(request, services, found, operation, options, key)
        incoming = msgspec.structs.replace(incoming, actor=actor_of(request))
        accepted = await services.threads.run(services.accept_write.accept, found, incoming)
    return await answer_accepted(request, services, accepted, preferred)


def _options(scope: OverwriteScope | None, where: str | None, **specified: Any) -> WriteOptions:
    """The options of a raw body; what was not said is as in a JSON body that does not say it."""
    options = {name: value for name, value in specified.items() if value is not None}
    if scope is not None or where is not None:
        options["overwrite"] = Overwrite(scope=scope or OverwriteScope.TABLE, where=where)
    return WriteOptions(**options)


async def _from_json(request: ApiRequest, services: Services, key: str | None) -> IncomingWrite:
    if request.query_params:
        errors = [
            FieldError(pointer=f"/{name}", detail="with a JSON body, options are members of the body")
            for name in dict.fromkeys(request.query_params)
        ]
        raise InvalidRequest("options are given beside a JSON body", errors)
    refuse_encoding(request)
    body = await read_body(request, services.json_body_bytes_max)
    return await services.threads.run(from_envelope, body, key)


async def _from_raw(
    request: ApiRequest,
    services: Services,
    dataset: Dataset,
    operation: Operation | None,
    options: WriteOptions,
    key: str | None,
) -> IncomingWrite:
    media_type = media_type_of(request)
    if media_type not in MEDIA_TYPES:
        raise refused_media_type(request, _ACCEPTED)
    form = Format.from_content_type(request.headers["content-type"])
    gzip = is_gzip(request)
    incoming = IncomingWrite(
        operation=operation or (Operation.UPSERT if dataset.definition.keyed else Operation.INSERT),
        options=options,
        source=Body(content=b"", format=form, gzip=gzip),
        idempotency_key=key,
    )
    # Before gigabytes are read, not after.
    incoming.checked(dataset)
    refuse_announced(request, services.upload_bytes_max)
    content = await spool_body(request, services.accept_write.spool(dataset), services.threads)
    # Only a key ever asks what the request was.
    digest = "" if key is None else await services.threads.run(_raw_hash, incoming, media_type, content)
    source = Body(content=content, format=form, gzip=gzip)
    return msgspec.structs.replace(incoming, source=source, request_hash=digest)


def _raw_hash(incoming: IncomingWrite, media_type: str, content: bytes | StoredBody) -> str:
    gzip = isinstance(incoming.source, Body) and incoming.source.gzip
    facts = body_facts(content, gzip=gzip)
    return request_hash(incoming.operation, incoming.options, media_type, facts)
