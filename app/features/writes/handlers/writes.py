"""Writes: accept rows, and wait for their job if the client prefers so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
from litestar import post

from app.access.tenants.values import KeyScope
from app.core.catalog.service import GrantedDatasets
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.features.writes.schemas import (
    CreateWrite,
    WriteQueryOptions,
    body_facts,
    from_envelope,
    request_hash,
    rows_digest,
)
from app.features.writes.service.accept import AcceptWrite, checked_write
from app.features.writes.service.accept_new import AcceptNewDataset
from app.features.writes.values import Body, IncomingWrite, NewPlace
from app.http.auth import needs
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
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import BINARY, documented
from app.http.parameters.query_parameters import DatasetReference
from app.http.request import ApiRequest
from app.http.table_response import ARROW_STREAM
from app.infra.files.received_body import StoredBody
from app.infra.identifiers import new_id
from app.kernel.format.definition.new_dataset import CreateWithRows
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.operation import Operation
from app.kernel.format.rows.formats import MEDIA_TYPES, Format

# The envelope of a smaller body is decoded in less time than a thread takes to begin with it: its rows are not decoded.
_SMALL_BODY_BYTES: Final = 32 * 1024
_ACCEPTED: Final = (JSON, *MEDIA_TYPES)
_RAW_DOCUMENTED: Final = (
    "application/x-ndjson",
    "text/csv",
    ARROW_STREAM,
    "application/vnd.apache.arrow.file",
    "application/vnd.apache.parquet",
)


@post(
    "/datasets/{dataset:str}/writes",
    operation_id="create_write",
    summary="Write rows",
    tags=["writes"],
    status_code=202,
    opt=needs(KeyScope.WRITE, creates=True)
    | documented(body={JSON: CreateWrite, **dict.fromkeys(_RAW_DOCUMENTED, BINARY)}, problems=[507]),
)
async def create_write(
    request: ApiRequest,
    dataset: DatasetReference,
    options: Provided[WriteQueryOptions],
    existing: Provided[Dataset | None],
    granted_datasets: Provided[GrantedDatasets],
    acceptance: Provided[Acceptance],
    accept_write: Provided[AcceptWrite],
    accept_new_dataset: Provided[AcceptNewDataset],
    json_body_bytes_max: Provided[int],
    upload_bytes_max: Provided[int],
    threads: Provided[Threads],
) -> JobReply:
    """Accepts rows as JSON, or raw as NDJSON, CSV, an Arrow stream or Parquet, each also with gzip encoding.

    Small JSON, NDJSON and CSV bodies are checked at once, larger, Arrow and Parquet ones by their job. The query
    parameters are for raw bodies; in a JSON body the options are members. With `create`, a dataset that does not exist
    is registered with the columns of the rows.
    """
    new = NewPlace(tenant_id=request.user.tenant_id, dataset_id=new_id(), name=dataset)
    reader = _BodyReader(
        request=request,
        accept_write=accept_write,
        key=acceptance.idempotency_key,
        threads=threads,
        json_body_bytes_max=json_body_bytes_max,
        upload_bytes_max=upload_bytes_max,
    )
    with acceptance.reserved(new.tenant_id, dataset if existing is None else existing.id):
        if media_type_of(request) == JSON:
            incoming = await reader.from_json()
        else:
            create = options.table()
            if existing is None:
                granted_datasets.check_missing(dataset, registers=create is not None)
            incoming = await reader.from_raw(new if existing is None else existing, options, create)
        incoming = msgspec.structs.replace(incoming, actor=acceptance.actor)
        if existing is None:
            granted_datasets.check_missing(dataset, registers=incoming.create is not None)
            outcome = await threads.run(accept_new_dataset.accept, new, incoming)
        else:
            outcome = await threads.run(accept_write.accept, existing, incoming)
    return await acceptance.reply(outcome)


@dataclass(frozen=True, kw_only=True, slots=True)
class _BodyReader:
    """Reads the write of a request."""

    request: ApiRequest
    accept_write: AcceptWrite
    key: str | None
    threads: Threads
    json_body_bytes_max: int
    upload_bytes_max: int

    async def from_json(self) -> IncomingWrite:
        """Raises InvalidRequest, MalformedBody, BodyTooLarge."""
        if self.request.query_params:
            errors = [
                FieldError(pointer=f"/{name}", detail="with a JSON body, options are members of the body")
                for name in dict.fromkeys(self.request.query_params)
            ]
            raise InvalidRequest("options are sent in the query, beside a JSON body", errors)
        refuse_encoding(self.request)
        body = await read_body(self.request, self.json_body_bytes_max)
        if len(body) <= _SMALL_BODY_BYTES:
            return from_envelope(body, self.key)
        return await self.threads.run(from_envelope, body, self.key)

    async def from_raw(
        self, place: Dataset | NewPlace, query_options: WriteQueryOptions, create: CreateWithRows | None
    ) -> IncomingWrite:
        """Raises UnsupportedMediaType, InvalidRequest, BodyTooLarge, StorageFull."""
        media_type = media_type_of(self.request)
        if media_type not in MEDIA_TYPES:
            raise refused_media_type(self.request, _ACCEPTED)
        form = Format.from_content_type(self.request.headers["content-type"])
        gzip = is_gzip(self.request)
        match place:
            case Dataset():
                has_key, dataset_id = place.definition.keyed, place.id
            case NewPlace():
                has_key, dataset_id = create is not None and bool(create.record_key), place.dataset_id
        default = Operation.UPSERT if has_key else Operation.INSERT
        incoming = IncomingWrite(
            operation=query_options.operation or default,
            options=query_options.options(),
            source=Body(content=b"", format=form, gzip=gzip),
            idempotency_key=self.key,
            create=create,
        )
        if isinstance(place, Dataset):
            # Before gigabytes are read, not after.
            checked_write(incoming, place)
        refuse_announced(self.request, self.upload_bytes_max)
        content = await spool_body(
            self.request, self.accept_write.inputs.spool(place.tenant_id, dataset_id), self.threads
        )
        incoming = msgspec.structs.replace(incoming, source=Body(content=content, format=form, gzip=gzip))
        if self.key is None and incoming.options.batch_id is None:
            # Digests are only ever compared with those of another request with the key or of the batch.
            return incoming
        return await self.threads.run(_with_digests, incoming, media_type, content)


def _with_digests(incoming: IncomingWrite, media_type: str, content: bytes | StoredBody) -> IncomingWrite:
    gzip = isinstance(incoming.source, Body) and incoming.source.gzip
    facts = body_facts(content, gzip=gzip)
    operation, options = incoming.operation, incoming.options
    return msgspec.structs.replace(
        incoming,
        request_hash=request_hash(operation, options, media_type, facts, incoming.create),
        rows_digest=rows_digest(operation, options, [media_type, *facts]),
    )
