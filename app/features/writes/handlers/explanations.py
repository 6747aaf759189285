"""Explanations: what a write would touch, and why, without writing."""

from __future__ import annotations

from typing import Annotated, Final

from litestar import get, post
from litestar.params import QueryParameter

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.features.writes.explanation import WriteExplanation
from app.features.writes.schemas import CreateWrite, from_envelope
from app.features.writes.service.explain import ExplainWrite
from app.http.auth import needs
from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.request import ApiRequest

_TAGS: Final = ["writes"]


@get(
    "/datasets/{dataset:str}/explanations",
    operation_id="explain_keys",
    summary="Explain where keys are and how they would be written",
    tags=_TAGS,
    opt=needs(KeyScope.READ) | documented(problems=[422]),
)
async def explain_keys(
    path_dataset: Provided[Dataset],
    explain_write: Provided[ExplainWrite],
    threads: Provided[Threads],
    key: Annotated[
        list[str],
        QueryParameter(
            description='A JSON object of the key fields, such as `{"id": 1}`; repeated for several keys.'
        ),
    ],
) -> WriteExplanation:
    """Explains an upsert of these keys: file groups, buckets, files, and whether each key has a row now."""
    return await threads.run(explain_write.keys, path_dataset, key)


@post(
    "/datasets/{dataset:str}/explanations",
    operation_id="explain_write",
    summary="Explain a write without running it",
    tags=_TAGS,
    status_code=200,
    opt=needs(KeyScope.READ) | documented(body={JSON: CreateWrite}, problems=[409, 422]),
)
async def explain_write(
    request: ApiRequest,
    path_dataset: Provided[Dataset],
    explain_write: Provided[ExplainWrite],
    json_body_bytes_max: Provided[int],
    threads: Provided[Threads],
) -> WriteExplanation:
    """Explains the write with this body, the same as for `create_write`; at most 1,000 rows. Nothing is written."""
    require_media_type(request, [JSON])
    refuse_encoding(request)
    incoming = await threads.run(from_envelope, await read_body(request, json_body_bytes_max), None)
    return await threads.run(explain_write.write, path_dataset, incoming)
