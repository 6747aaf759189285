"""Uploads: large inputs, streamed to storage and named by a write afterwards."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from litestar import Response, post

from app.catalog.schemas import UploadResponse, upload_response
from app.catalog.values import Upload
from app.files.received_body import StoredBody
from app.format.identifiers import new_id
from app.http.body_stream import (
    JSON,
    OCTET_STREAM,
    refuse_announced,
    refuse_encoding,
    require_media_type,
    spool_body,
)
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.openapi.operation_docs import BINARY, Answer, documented
from app.http.query_parameters import DatasetReference


@post(
    "/datasets/{dataset:str}/uploads",
    operation_id="create_upload",
    summary="Upload a large input",
    tags=["writes"],
    opt=documented(
        {201: Answer(description="Stored.", content={JSON: UploadResponse})},
        body={OCTET_STREAM: BINARY},
        problems=[400, 404, 413, 415, 507],
    ),
)
async def create_upload(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Stores the bytes of the body as they are. A write with `source.kind: upload` says how to read them."""
    services = services_of(request)
    require_media_type(request, [OCTET_STREAM])
    refuse_encoding(request)
    refuse_announced(request, services.upload_bytes_max)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    upload_id = new_id()
    stored = await spool_body(request, services.accept_write.spool_upload(found, upload_id), services.threads)
    if not isinstance(stored, StoredBody):
        raise AssertionError("an upload is always stored")
    upload = Upload(
        id=upload_id,
        dataset_id=found.id,
        path=stored.path,
        size_bytes=stored.size_bytes,
        checksum=stored.checksum,
        created_at=datetime.now(UTC),
    )
    await services.threads.run(services.accept_write.record_upload, found, upload)
    return Response(encode(upload_response(upload)), status_code=201, media_type=JSON)
