"""Savepoints and tags: versions that are kept under a name. Both kinds have the same handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

import msgspec
from litestar import delete, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody, PathParameter

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.core.jobs.kinds.named_version import SavepointTask, TagTask, VersionKind
from app.features.versions.schemas import (
    CreateNamedVersion,
    NamedVersionPage,
    NamedVersionResponse,
    named_version_page,
    named_version_response,
)
from app.features.versions.service.name_versions import NameVersions
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.parameters.page_options import PageOptions

_TASKS: Final[Mapping[VersionKind, type[SavepointTask | TagTask]]] = {
    VersionKind.SAVEPOINT: SavepointTask,
    VersionKind.TAG: TagTask,
}

VersionName: TypeAlias = Annotated[str, PathParameter(description="The name of the savepoint or tag.")]


class _Description(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between the two kinds, for the OpenAPI document."""

    summary: str
    create: str
    list: str
    end: str


def _handlers(kind: VersionKind, description: _Description) -> tuple[HTTPRouteHandler, ...]:
    """Create, list, get and delete the named versions of a kind."""
    word = kind.value
    collection, tags = f"/datasets/{{dataset:str}}/{word}s", [f"{word}s"]
    resource = f"{collection}/{{name:str}}"

    @post(
        collection,
        operation_id=f"create_{word}",
        summary=description.summary,
        description=description.create,
        tags=tags,
        status_code=202,
        opt=needs(KeyScope.MANAGE) | documented(problems=[410]),
    )
    async def create(
        path_dataset: Provided[Dataset],
        name_versions: Provided[NameVersions],
        acceptance: Provided[Acceptance],
        data: JSONBody[CreateNamedVersion],
    ) -> JobReply:
        task = msgspec.convert(data, _TASKS[kind], from_attributes=True)
        identity = acceptance.requested(word, task)
        return await acceptance.accept(
            path_dataset, lambda *_: name_versions.start(path_dataset, task, identity)
        )

    @get(
        collection,
        operation_id=f"list_{word}s",
        summary=f"List {word}s",
        description=description.list,
        tags=tags,
        opt=needs(KeyScope.READ, in_part=True),
    )
    async def list_(
        options: Provided[PageOptions],
        path_dataset: Provided[Dataset],
        name_versions: Provided[NameVersions],
        threads: Provided[Threads],
    ) -> NamedVersionPage:
        page = await threads.run(
            name_versions.list, path_dataset, kind, page_size=options.page_size, page_token=options.page_token
        )
        return named_version_page(path_dataset, page)

    @get(
        resource,
        operation_id=f"get_{word}",
        summary=f"Get a {word}",
        description=f"Returns the version that a {word} names, and when the name expires.",
        tags=tags,
        opt=needs(KeyScope.READ, in_part=True),
    )
    async def get_one(
        name: VersionName,
        path_dataset: Provided[Dataset],
        name_versions: Provided[NameVersions],
        threads: Provided[Threads],
    ) -> NamedVersionResponse:
        return named_version_response(
            path_dataset, await threads.run(name_versions.get, path_dataset, kind, name)
        )

    @delete(
        resource,
        operation_id=f"delete_{word}",
        summary=f"Delete a {word}",
        description=description.end,
        tags=tags,
        opt=needs(KeyScope.MANAGE) | documented(description="Deleted: the name is free again."),
    )
    async def delete_one(
        name: VersionName,
        path_dataset: Provided[Dataset],
        name_versions: Provided[NameVersions],
        threads: Provided[Threads],
    ) -> None:
        await threads.run(name_versions.remove, path_dataset, kind, name)

    return create, list_, get_one, delete_one


SAVEPOINT_HANDLERS: Final = _handlers(
    VersionKind.SAVEPOINT,
    _Description(
        summary="Name a version to go back to",
        create="Gives a version a name, and keeps the version as long as it has the name: it can be read and "
        "restored.\n\nThe changes since that version are kept too.",
        list="Lists the savepoints of a dataset.",
        end="Deletes the name. The version and the changes since are kept no longer than the history and the changelog "
        "of the dataset require.",
    ),
)
TAG_HANDLERS: Final = _handlers(
    VersionKind.TAG,
    _Description(
        summary="Name a version to read",
        create="Gives a version a name by which it can be read, and keeps the version as long as it has the name.",
        list="Lists the tags of a dataset, including those that its services made.",
        end="Deletes the name. The version is kept no longer than the history of the dataset requires.",
    ),
)
