"""Uploads: large inputs, streamed to storage and named by a write afterwards."""

from __future__ import annotations

from datetime import UTC, datetime

from litestar import post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope
from app.core.catalog.schemas import UploadResponse, upload_response
from app.core.catalog.values import Dataset, Upload
from app.core.idempotency.providers import Idempotency
from app.features.writes.schemas import CreateUploadLink, UploadLinkResponse, upload_link_response
from app.features.writes.service.uploads import Uploads
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
from app.infra.files.received_body import StoredBody
from app.infra.files.s3.links import StorageLinks
from app.infra.identifiers import new_id


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
    path_dataset: Provided[Dataset],
    uploads: Provided[Uploads],
    upload_bytes_max: Provided[int],
    threads: Provided[Threads],
) -> ApiResponse[UploadResponse]:
    """Stores the bytes of the body as they are. A write with `source.kind: upload` says how to read them."""
    require_media_type(request, [OCTET_STREAM])
    refuse_encoding(request)
    refuse_announced(request, upload_bytes_max)
    await threads.run(uploads.check, path_dataset)
    upload_id = new_id()
    with in_flight.reserved(path_dataset.tenant_id, f"{path_dataset.id}/uploads", idempotency.key):
        body = await spool_body(request, uploads.spool(path_dataset, upload_id), threads)
        if not isinstance(body, StoredBody):
            raise AssertionError("an upload is always stored")
        upload = Upload(
            id=upload_id,
            dataset_id=path_dataset.id,
            path=body.path,
            size_bytes=body.size_bytes,
            checksum=body.checksum,
            created_at=datetime.now(UTC),
        )

        def create() -> ApiResponse[UploadResponse]:
            uploads.record(path_dataset, upload)
            return ApiResponse(upload_response(upload), status_code=201)

        # The bytes of a retry are those of no upload, so the reaper removes them.
        return await idempotency.run(
            create, dataset_id=path_dataset.id, content=f"{body.size_bytes} {body.checksum}"
        )


@post(
    "/datasets/{dataset:str}/upload-links",
    operation_id="create_upload_link",
    summary="Get a link to upload a large input to",
    tags=["writes"],
    opt=needs(KeyScope.WRITE) | documented(problems=[404, 409, 413]),
)
async def create_upload_link(
    data: JSONBody[CreateUploadLink],
    idempotency: Provided[Idempotency],
    path_dataset: Provided[Dataset],
    uploads: Provided[Uploads],
    storage_links: Provided[StorageLinks | None],
) -> ApiResponse[UploadLinkResponse]:
    """Returns where to send the bytes of an upload: to the storage, not through the API.

    Once they are there, a write with `source.kind: upload` names the upload. A service whose storage is a folder gives
    no links.
    """

    def create() -> ApiResponse[UploadLinkResponse]:
        link = uploads.link(path_dataset, storage_links, size_bytes=data.size_bytes, sha256=data.sha256)
        return ApiResponse(upload_link_response(link), status_code=201, headers={"Cache-Control": "no-store"})

    return await idempotency.run(create, dataset_id=path_dataset.id, secret=True)
