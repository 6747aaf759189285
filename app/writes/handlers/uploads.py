"""Uploads: large inputs, streamed to storage and named by a write afterwards."""

from __future__ import annotations

from datetime import UTC, datetime

from litestar import post

from app.catalog.schemas import UploadResponse, upload_response
from app.catalog.values import Dataset, Upload
from app.files.received_body import StoredBody
from app.format.identifiers import new_id
from app.http.auth import needs
from app.http.body_stream import (
    OCTET_STREAM,
    refuse_announced,
    refuse_encoding,
    require_media_type,
    spool_body,
)
from app.http.dependencies import Provided
from app.http.in_flight import InFlight
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import BINARY, documented
from app.http.request import ApiRequest
from app.http.response import ApiResponse
from app.idempotency.providers import Idempotency
from app.tenants.values import KeyScope
from app.writes.service.accept import AcceptWrite


@post(
    "/datasets/{dataset:str}/uploads",
    operation_id="create_upload",
    summary="Upload a large input",
    tags=["writes"],
    opt=needs(KeyScope.WRITE) | documented(body={OCTET_STREAM: BINARY}, problems=[507]),
)
async def create_upload(
    request: ApiRequest,
    idempotency: Provided[Idempotency],
    in_flight: Provided[InFlight],
    found: Provided[Dataset],
    accept_write: Provided[AcceptWrite],
    upload_bytes_max: Provided[int],
    threads: Provided[Threads],
) -> ApiResponse[UploadResponse]:
    """Stores the bytes of the body as they are. A write with `source.kind: upload` says how to read them."""
    require_media_type(request, [OCTET_STREAM])
    refuse_encoding(request)
    refuse_announced(request, upload_bytes_max)
    await threads.run(accept_write.check_upload, found)
    upload_id = new_id()
    with in_flight.reserved(found.tenant_id, f"{found.id}/uploads", idempotency.key):
        stored = await spool_body(request, accept_write.spool_upload(found, upload_id), threads)
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

        def create() -> ApiResponse[UploadResponse]:
            accept_write.record_upload(found, upload)
            return ApiResponse(upload_response(upload), status_code=201)

        # The bytes of a retry are those of no upload, so the reaper removes them.
        return await idempotency.run(
            create, dataset_id=found.id, content=f"{stored.size_bytes} {stored.checksum}"
        )
