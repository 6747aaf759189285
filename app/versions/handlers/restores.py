"""Restores and rollbacks: taking a dataset back in time, by writes that its feed tells."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from litestar import Response, post

from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.headers import preference
from app.http.openapi.operation_docs import documented
from app.http.query_parameters import DatasetReference
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.jobs.handlers.job_request import read_json, request_identity
from app.versions.service.restores import RestorePoint

_INSTANTS_MAX: Final = 10_000
_PROBLEMS: Final = [400, 404, 409, 410, 413, 415, 422]
_Version = Annotated[int, msgspec.Meta(ge=0)]


class NewRestore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version to go back to, said in one way. `tag`: the name of a tag or savepoint.

    `expected_version`: the dataset must be at that version still when the restore commits.
    """

    version: _Version | None = None
    savepoint: str | None = None
    tag: str | None = None
    as_of: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    expected_version: _Version | None = None


class NewRollback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of the newest versions to undo: those that writes made. `expected_version`: as of a restore."""

    instants: Annotated[int, msgspec.Meta(ge=1, le=_INSTANTS_MAX)] = 1
    expected_version: _Version | None = None


@post(
    "/datasets/{dataset:str}/restores",
    operation_id="create_restore",
    summary="Go back to an earlier version",
    tags=["restores"],
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewRestore},
        request_headers=ACCEPTING_HEADERS,
        problems=_PROBLEMS,
    ),
)
async def create_restore(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Gives the dataset the rows that it had at a version, under the schema that it has now.

    It is a write: it makes a new version, and the feed tells what it changes. Writes that were accepted before it are
    undone with the others. Nothing of the past is lost, so that a restore can be undone as well.
    """
    new = await read_json(request, NewRestore)
    point = RestorePoint(version=new.version, as_of=new.as_of, savepoint=new.savepoint, tag=new.tag)
    services = services_of(request)
    preferred, wanted = preference(request.headers), request_identity(request, "restore", new)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    with services.in_flight.reserved(found.tenant_id, found.id, wanted.idempotency_key):
        accepted = await services.threads.run(
            services.restores.restore, found, point, wanted, expected_version=new.expected_version
        )
    return await answer_accepted(request, services, accepted, preferred)


@post(
    "/datasets/{dataset:str}/rollbacks",
    operation_id="create_rollback",
    summary="Undo the newest writes",
    tags=["restores"],
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewRollback},
        body_required=False,
        request_headers=ACCEPTING_HEADERS,
        problems=_PROBLEMS,
    ),
)
async def create_rollback(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Undoes the newest versions that writes have made by the time the job runs.

    Writes that were committed together made one version. Table services and changes of the schema are neither counted
    nor undone; restores and rollbacks are writes, so undoing one of them brings back what it undid.
    """
    new = await read_json(request, NewRollback, default=NewRollback())
    services = services_of(request)
    preferred, wanted = preference(request.headers), request_identity(request, "rollback", new)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    with services.in_flight.reserved(found.tenant_id, found.id, wanted.idempotency_key):
        accepted = await services.threads.run(
            services.restores.rollback, found, new.instants, wanted, expected_version=new.expected_version
        )
    return await answer_accepted(request, services, accepted, preferred)
