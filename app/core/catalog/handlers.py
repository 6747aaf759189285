"""Datasets: register, find, list, change, delete."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from litestar import delete, get, patch, post
from litestar.params import JSONBody, QueryParameter

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.impact import SchemaImpact
from app.core.catalog.ports import ReadingExamples
from app.core.catalog.schemas import (
    ChangeDatasetOptions,
    DatasetPage,
    DatasetResponse,
    DatasetSchemaResponse,
    ListDatasetsOptions,
    ListSchemasOptions,
    SchemaPage,
    dataset_path,
    dataset_response,
    schema_response,
)
from app.core.catalog.service import Datasets, GrantedDatasets
from app.core.catalog.values import Dataset
from app.core.idempotency.providers import Idempotency
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.parameters.query_parameters import INT64_MAX, DatasetReference
from app.http.response import Created, Tagged
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.definition.schema_change import UpdateDataset

_DEFINITION_BYTES_MAX: Final = 4 * 1024 * 1024
_TAGS: Final = ["datasets"]


@post(
    "/datasets",
    operation_id="create_dataset",
    summary="Register a dataset",
    tags=_TAGS,
    request_max_body_size=_DEFINITION_BYTES_MAX,
    opt=needs(KeyScope.WRITE) | documented(problems=[409, 422]),
)
async def create_dataset(
    data: JSONBody[CreateDataset],
    idempotency: Provided[Idempotency],
    datasets: Provided[Datasets],
    granted_datasets: Provided[GrantedDatasets],
    principal: Provided[Principal],
) -> Created[DatasetResponse]:
    """Registers a dataset: its columns, its key, and how rows are laid out and merged.

    Without a `record_key` it is append-only.
    """

    granted_datasets.check_new(data.name)

    def create() -> Created[DatasetResponse]:
        dataset = datasets.register(principal.tenant_id, data)
        return Created(dataset_response(dataset), path=dataset_path(dataset), revision=dataset.version)

    return await idempotency.run(create)


@get("/datasets", operation_id="list_datasets", summary="List datasets", tags=_TAGS, opt=needs(KeyScope.READ))
async def list_datasets(
    options: Provided[ListDatasetsOptions],
    datasets: Provided[Datasets],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> DatasetPage:
    """Lists the tenant's datasets by name: all, those whose names match a pattern, or those with all of some labels."""
    page = await threads.run(
        datasets.list,
        principal,
        options.selection,
        page_size=options.page_size,
        page_token=options.page_token,
    )
    return DatasetPage(items=[dataset_response(each) for each in page.items], next_page_token=page.next_token)


@get(
    "/datasets/{dataset:str}",
    operation_id="get_dataset",
    summary="Get a dataset",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def get_dataset(
    path_dataset: Provided[Dataset],
    reading_examples: Provided[ReadingExamples],
    public_url: Provided[str],
) -> Tagged[DatasetResponse]:
    """Returns a dataset by its id or its name, and how engines read it. The ETag is its version."""
    examples = reading_examples(public_url, path_dataset.definition.name)
    return Tagged(dataset_response(path_dataset, read_with=examples), revision=path_dataset.version)


@patch(
    "/datasets/{dataset:str}",
    operation_id="change_dataset",
    summary="Change a dataset",
    tags=_TAGS,
    request_max_body_size=_DEFINITION_BYTES_MAX,
    opt=needs(KeyScope.MANAGE) | documented(problems=[409, 422]),
)
async def change_dataset(
    dataset: DatasetReference,
    data: JSONBody[UpdateDataset],
    options: Provided[ChangeDatasetOptions],
    required_if_match_revision: Provided[int],
    datasets: Provided[Datasets],
    granted_datasets: Provided[GrantedDatasets],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Tagged[DatasetResponse]:
    """Changes the members of the request: the name, the schema, the retention of the feed, the table services.

    All of them are changed, or none. That makes a version without files, unless only the description, the labels and
    the expected time are changed. No file is rewritten: rows that are there already are read under the new schema.

    A change of the schema that breaks what names a column of the dataset is refused (409 `schema-in-use`): a view, a
    source, an export, a webhook, the grants of a key. With `cascade=pause` it is made, and these pause. With `dry_run`
    nothing is changed.
    """
    if data.name is not msgspec.UNSET:
        granted_datasets.check_new(data.name)
    impact = SchemaImpact(principal=principal, cascade=options.cascade is not None)
    change = datasets.try_change if options.dry_run else datasets.change
    changed_dataset = await threads.run(change, impact, dataset, data, version=required_if_match_revision)
    revision = required_if_match_revision if options.dry_run else changed_dataset.version
    return Tagged(dataset_response(changed_dataset, impact.broken), revision=revision)


@get(
    "/datasets/{dataset:str}/schema",
    operation_id="get_dataset_schema",
    summary="Get the schema of a dataset",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def get_dataset_schema(
    path_dataset: Provided[Dataset],
    datasets: Provided[Datasets],
    principal: Provided[Principal],
    threads: Provided[Threads],
    schema_id: Annotated[
        int | None,
        QueryParameter(
            name="id",
            ge=1,
            le=INT64_MAX,
            description="The id of a schema that the dataset had; the latest by default.",
        ),
    ] = None,
) -> DatasetSchemaResponse:
    """Returns a schema, with the ids that fields keep when they are renamed, and what names columns of the latest one:
    views, sources, exports, webhooks, and the grants of keys.
    """
    version = await threads.run(datasets.schema, path_dataset, schema_id)
    if version.schema.id != path_dataset.definition.schema.id:
        return schema_response(version)
    return schema_response(version, await threads.run(datasets.readers, principal, path_dataset))


@get(
    "/datasets/{dataset:str}/schemas",
    operation_id="list_dataset_schemas",
    summary="List the schemas of a dataset",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def list_dataset_schemas(
    options: Provided[ListSchemasOptions],
    path_dataset: Provided[Dataset],
    datasets: Provided[Datasets],
    threads: Provided[Threads],
) -> SchemaPage:
    """Lists every schema that the dataset had, the latest first."""
    page = await threads.run(
        datasets.schemas, path_dataset, page_size=options.page_size, page_token=options.page_token
    )
    return SchemaPage(items=[schema_response(each) for each in page.items], next_page_token=page.next_token)


@delete(
    "/datasets/{dataset:str}",
    operation_id="delete_dataset",
    summary="Delete a dataset",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE) | documented(problems=[409]),
)
async def delete_dataset(
    dataset: DatasetReference,
    if_match_revision: Provided[int | None],
    datasets: Provided[Datasets],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> None:
    """Deletes a dataset and cancels its jobs. Its name is free at once. A dataset that views read is kept: 409."""
    await threads.run(datasets.delete, principal.tenant_id, dataset, version=if_match_revision)
