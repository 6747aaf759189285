"""Datasets: register, find, list, end."""

from __future__ import annotations

from typing import Annotated, Any, Final

from litestar import Response, delete, get, patch, post
from litestar.params import QueryParameter

from app.catalog.schemas import (
    DatasetPage,
    DatasetResponse,
    SchemaPage,
    SchemaResponse,
    dataset_path,
    dataset_response,
    schema_response,
)
from app.format.definition.new_dataset import NewDataset
from app.format.definition.schema_change import DatasetChanges
from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, actor_of, services_of, tenant_of
from app.http.encoding import encode
from app.http.headers import etag, expected_version, required_version
from app.http.json_body import decode_json
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import INT64_MAX, DatasetReference, PageSize, PageToken

_DEFINITION_BYTES_MAX: Final = 4 * 1024 * 1024
_TAGS: Final = ["datasets"]
_ETAG: Final = {"ETag": "The dataset's version, quoted."}


@post(
    "/datasets",
    operation_id="create_dataset",
    summary="Register a dataset",
    tags=_TAGS,
    opt=documented(
        {
            201: Answer(
                description="Registered.",
                content={JSON: DatasetResponse},
                headers={"Location": "Its path.", **_ETAG},
            )
        },
        body={JSON: NewDataset},
        problems=[400, 409, 413, 415, 422],
    ),
)
async def create_dataset(request: ApiRequest) -> Response[Any]:
    """Registers a dataset: its columns, its key, and how rows are laid out and merged.

    Without a `record_key` it is append-only.
    """
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    new = decode_json(await read_body(request, _DEFINITION_BYTES_MAX), NewDataset)
    dataset = await services.threads.run(services.datasets.register, tenant_of(request), new)
    headers = {"Location": dataset_path(dataset), "ETag": etag(dataset.version)}
    return Response(encode(dataset_response(dataset)), status_code=201, media_type=JSON, headers=headers)


@get(
    "/datasets",
    operation_id="list_datasets",
    summary="List datasets",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="A page, by name.", content={JSON: DatasetPage})}, problems=[400]
    ),
)
async def list_datasets(
    request: ApiRequest, page_size: PageSize = 100, page_token: PageToken = None
) -> Response[Any]:
    """Lists the tenant's datasets by name."""
    services = services_of(request)
    page = await services.threads.run(
        services.datasets.list, tenant_of(request), page_size=page_size, page_token=page_token
    )
    items = [dataset_response(dataset) for dataset in page.items]
    return Response(encode(DatasetPage(items=items, next_page_token=page.next_token)), media_type=JSON)


@get(
    "/datasets/{dataset:str}",
    operation_id="get_dataset",
    summary="Get a dataset",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="The dataset.", content={JSON: DatasetResponse}, headers=_ETAG)},
        problems=[404],
    ),
)
async def get_dataset(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """A dataset by its id or its name."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    return Response(encode(dataset_response(found)), media_type=JSON, headers={"ETag": etag(found.version)})


@patch(
    "/datasets/{dataset:str}",
    operation_id="change_dataset",
    summary="Change a dataset",
    tags=_TAGS,
    opt=documented(
        {
            200: Answer(
                description="Changed, at its next version.", content={JSON: DatasetResponse}, headers=_ETAG
            )
        },
        body={JSON: DatasetChanges},
        request_headers={"If-Match": "The ETag that the dataset must still have; required."},
        problems=[400, 404, 412, 413, 415, 422, 428],
    ),
)
async def change_dataset(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Changes the schema, one change after another, and how long the feed is kept: all of it, or nothing.

    That makes a version of its own. No file is rewritten: rows that are there already are read under the new schema.
    """
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    version = required_version(request.headers)
    wanted = decode_json(await read_body(request, _DEFINITION_BYTES_MAX), DatasetChanges)
    changed = await services.threads.run(
        services.datasets.evolve,
        tenant_of(request),
        dataset,
        wanted,
        version=version,
        actor=actor_of(request),
    )
    headers = {"ETag": etag(changed.version)}
    return Response(encode(dataset_response(changed)), media_type=JSON, headers=headers)


@get(
    "/datasets/{dataset:str}/schema",
    operation_id="get_dataset_schema",
    summary="Get the schema of a dataset",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="The schema.", content={JSON: SchemaResponse})}, problems=[400, 404]
    ),
)
async def get_dataset_schema(
    request: ApiRequest,
    dataset: DatasetReference,
    schema_id: Annotated[
        int | None,
        QueryParameter(
            name="id", ge=1, le=INT64_MAX, description="One that the dataset had; the latest unless said."
        ),
    ] = None,
) -> Response[Any]:
    """A schema, with the ids that fields keep when they are renamed."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    schema = await services.threads.run(services.datasets.schema, found, schema_id)
    return Response(encode(schema_response(schema)), media_type=JSON)


@get(
    "/datasets/{dataset:str}/schemas",
    operation_id="list_dataset_schemas",
    summary="List the schemas of a dataset",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="A page, the latest first.", content={JSON: SchemaPage})},
        problems=[400, 404],
    ),
)
async def list_dataset_schemas(
    request: ApiRequest, dataset: DatasetReference, page_size: PageSize = 100, page_token: PageToken = None
) -> Response[Any]:
    """Every schema that the dataset had."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(
        services.datasets.schemas, found, page_size=page_size, page_token=page_token
    )
    items = [schema_response(version) for version in page.items]
    return Response(encode(SchemaPage(items=items, next_page_token=page.next_token)), media_type=JSON)


@delete(
    "/datasets/{dataset:str}",
    operation_id="delete_dataset",
    summary="End a dataset",
    tags=_TAGS,
    status_code=204,
    opt=documented(
        {204: Answer(description="Ended; its name is free at once.")},
        request_headers={"If-Match": "The ETag that the dataset must still have."},
        problems=[404, 412],
    ),
)
async def delete_dataset(request: ApiRequest, dataset: DatasetReference) -> None:
    """Ends a dataset and cancels its jobs."""
    services = services_of(request)
    version = expected_version(request.headers)
    await services.threads.run(services.datasets.delete, tenant_of(request), dataset, version=version)
