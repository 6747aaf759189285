"""Restores and rollbacks: writes that give a dataset the rows of an earlier version."""

from __future__ import annotations

from functools import partial
from typing import Final

from litestar import post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.features.versions.schemas import CreateRestore, CreateRollback
from app.features.versions.service.restores import Restores
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.openapi.operation_docs import documented

_TAGS: Final = ["restores"]
_ROLLBACK: Final = CreateRollback()


@post(
    "/datasets/{dataset:str}/restores",
    operation_id="create_restore",
    summary="Go back to an earlier version",
    tags=_TAGS,
    status_code=202,
    opt=needs(KeyScope.MANAGE) | documented(problems=[410]),
)
async def create_restore(
    path_dataset: Provided[Dataset],
    restores: Provided[Restores],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateRestore],
) -> JobReply:
    """Gives the dataset the rows that it had at a version, under its present schema.

    A restore is a write: it makes a new version, and the feed has the changes. Writes that were accepted before it are
    undone with the others. The versions in between stay, so a restore can be undone as well.
    """
    start = partial(
        restores.restore,
        path_dataset,
        data,
        acceptance.requested("restore", data),
        expected_version=data.expected_version,
    )
    return await acceptance.accept(path_dataset, lambda *_: start())


@post(
    "/datasets/{dataset:str}/rollbacks",
    operation_id="create_rollback",
    summary="Undo the newest writes",
    tags=_TAGS,
    status_code=202,
    opt=needs(KeyScope.MANAGE) | documented(problems=[410]),
)
async def create_rollback(
    path_dataset: Provided[Dataset],
    restores: Provided[Restores],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateRollback] = _ROLLBACK,
) -> JobReply:
    """Undoes the newest versions that writes have made by the time the job runs.

    Writes that were committed together made one version. Table services and schema changes are neither counted nor
    undone. Restores and rollbacks are writes: undoing one brings back what it undid.
    """
    start = partial(
        restores.rollback,
        path_dataset,
        data.instants,
        acceptance.requested("rollback", data),
        expected_version=data.expected_version,
    )
    return await acceptance.accept(path_dataset, lambda *_: start())
