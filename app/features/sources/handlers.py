"""Sources: register, find, pause, resume, reset, delete, and start rounds."""

from __future__ import annotations

from typing import Final

from litestar import delete, get, patch, post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.service import GrantedDatasets
from app.core.idempotency.providers import Idempotency
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.features.sources.schemas import (
    CreateSource,
    ListSourcesOptions,
    SourcePage,
    SourceReference,
    SourceResponse,
    UpdateSource,
    source_change,
    source_definition,
    source_path,
    source_response,
)
from app.features.sources.service.sources import ManageSources
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.json_body import require_member
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.response import Created, Tagged

_BODY_BYTES_MAX: Final = 256 * 1024
_TAGS: Final = ["sources"]


@post(
    "/sources",
    operation_id="create_source",
    summary="Register a source",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.MANAGE) | documented(problems=[404, 409, 422]),
)
async def create_source(
    data: JSONBody[CreateSource],
    sources: Provided[ManageSources],
    granted_datasets: Provided[GrantedDatasets],
    idempotency: Provided[Idempotency],
    outbound: Provided[Threads],
) -> Created[SourceResponse]:
    """Registers something whose data are written to a dataset as they arrive: files, other datasets, HTTP APIs or
    databases.

    The first round starts at once.
    """

    def create() -> Created[SourceResponse]:
        source = sources.create(granted_datasets, data.name, source_definition(data), data.position)
        return Created(source_response(source), path=source_path(source), revision=source.revision)

    # It may look hosts up, which takes as long as their name servers do.
    return await idempotency.run(create, threads=outbound)


@get(
    "/sources",
    operation_id="list_sources",
    summary="List sources",
    tags=_TAGS,
    opt=needs(KeyScope.READ) | documented(problems=[404]),
)
async def list_sources(
    options: Provided[ListSourcesOptions],
    sources: Provided[ManageSources],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> SourcePage:
    """Lists the tenant's sources by name."""
    page = await threads.run(
        sources.list,
        granted_datasets,
        options.dataset,
        page_size=options.page_size,
        page_token=options.page_token,
    )
    return SourcePage(items=[source_response(each) for each in page.items], next_page_token=page.next_token)


@get(
    "/sources/{source:str}",
    operation_id="get_source",
    summary="Get a source",
    tags=_TAGS,
    opt=needs(KeyScope.READ),
)
async def get_source(
    source: SourceReference,
    sources: Provided[ManageSources],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Tagged[SourceResponse]:
    """Returns a source: its position, what it has not read yet, and why its last round failed, if it did."""
    data_source = await threads.run(sources.get, principal.tenant_id, source)
    return Tagged(source_response(data_source), revision=data_source.revision)


@patch(
    "/sources/{source:str}",
    operation_id="change_source",
    summary="Change a source: pause, resume, reset, limits",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.MANAGE) | documented(problems=[422]),
)
async def change_source(
    source: SourceReference,
    data: JSONBody[UpdateSource],
    if_match_revision: Provided[int | None],
    sources: Provided[ManageSources],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Tagged[SourceResponse]:
    """Changes the members of the request. A round that runs is committed, unless the position is changed: then its
    rows are read again from there.
    """
    require_member(data)
    data_source = await threads.run(
        sources.change, principal.tenant_id, source, source_change(data, if_match_revision)
    )
    return Tagged(source_response(data_source), revision=data_source.revision)


@delete(
    "/sources/{source:str}",
    operation_id="delete_source",
    summary="Delete a source",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE, only_ends=True),
)
async def delete_source(
    source: SourceReference,
    if_match_revision: Provided[int | None],
    sources: Provided[ManageSources],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> None:
    """Deletes a source and cancels its round. The dataset and its rows stay."""
    await threads.run(sources.delete, principal.tenant_id, source, revision=if_match_revision)


@post(
    "/sources/{source:str}/rounds",
    operation_id="start_source_round",
    summary="Start a round",
    tags=_TAGS,
    status_code=202,
    opt=needs(KeyScope.WRITE) | documented(problems=[422]),
)
async def start_source_round(
    source: SourceReference,
    sources: Provided[ManageSources],
    acceptance: Provided[Acceptance],
    principal: Provided[Principal],
    outbound: Provided[Threads],
) -> JobReply:
    """Queues a round now, whatever the state of the source. If one is queued already, that one is returned."""
    data_source = await outbound.run(sources.get, principal.tenant_id, source)
    round_job = await outbound.run(sources.start, data_source, acceptance.idempotency_key, acceptance.actor)
    return await acceptance.reply(round_job)
