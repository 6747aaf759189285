"""Cleans: expire versions that the history of a dataset need not keep."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import msgspec
from litestar import post
from litestar.params import JSONBody

from app.catalog.values import Dataset
from app.format.definition.policy_rules import SECONDS_MAX, VERSIONS_MAX
from app.format.policies import HistoryPolicy
from app.http.dependencies import Provided
from app.jobs.handlers.accepted import Acceptance, JobReply
from app.jobs.tasks import CleanTask
from app.maintenance.service.table_services import TableServiceRequests


class CreateClean(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which versions to keep, in place of the dataset's `services.history`.

    With neither member it is the dataset's own history; a dataset without one keeps all versions.
    """

    versions: Annotated[int, msgspec.Meta(ge=1, le=VERSIONS_MAX)] | None = None
    """Keeps the last versions, so many."""
    seconds: Annotated[int, msgspec.Meta(ge=0, le=SECONDS_MAX)] | None = None
    """Keeps the versions that were the latest at any time in the last seconds, so many."""


_DEFAULTS: Final = CreateClean()


@post(
    "/datasets/{dataset:str}/cleans",
    operation_id="create_clean",
    summary="Clean a dataset",
    tags=["cleans"],
    status_code=202,
)
async def create_clean(
    found: Provided[Dataset],
    table_services: Provided[TableServiceRequests],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateClean] = _DEFAULTS,
) -> JobReply:
    """Expires earlier versions, and removes the files that no version which is kept has.

    Versions that have a name, and those that are being read, stay readable. Instants beyond those that
    `services.timeline` keeps are archived. Neither the table nor its feed changes, and no version is made. The job's
    `result` says what was removed.
    """
    history = HistoryPolicy(versions=data.versions, seconds=data.seconds)
    task = CleanTask(history=None if history == HistoryPolicy() else history)
    return await acceptance.accept(found, partial(table_services.start, found, task))
