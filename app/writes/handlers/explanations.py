"""What a write would touch, and why, without writing."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, get, post
from litestar.params import QueryParameter

from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import DatasetReference
from app.writes.explanation import WriteExplanation
from app.writes.handlers.write_request import NewWrite, from_envelope

_TAGS = ["writes"]
_EXPLAINED = {
    200: Answer(
        description="The file groups that the write would touch, were it to run now.",
        content={JSON: WriteExplanation},
    )
}


@get(
    "/datasets/{dataset:str}/explain-write",
    operation_id="explain_keys",
    summary="Explain where keys are and how they would be written",
    tags=_TAGS,
    opt=documented(_EXPLAINED, problems=[400, 404, 422]),
)
async def explain_keys(
    request: ApiRequest,
    dataset: DatasetReference,
    key: Annotated[
        list[str],
        QueryParameter(
            description='A JSON object of the key fields, such as `{"id": 1}`; repeated for more.'
        ),
    ],
) -> Response[Any]:
    """What an upsert of these keys would touch: file group, bucket, files, and whether each key has a row now."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    explained = await services.threads.run(services.explain_write.keys, found, key)
    return Response(msgspec.json.encode(explained), media_type=JSON)


@post(
    "/datasets/{dataset:str}/explain-write",
    operation_id="explain_write",
    summary="Explain a write without running it",
    tags=_TAGS,
    status_code=200,
    opt=documented(_EXPLAINED, body={JSON: NewWrite}, problems=[400, 404, 409, 413, 415, 422]),
)
async def explain_write(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """What a write with this body would touch. Nothing is written; the rows are in the body, 1,000 at most."""
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    body = await read_body(request, services.json_body_bytes_max)
    incoming = await services.threads.run(from_envelope, body, None)
    explained = await services.threads.run(services.explain_write.write, found, incoming)
    return Response(msgspec.json.encode(explained), media_type=JSON)
