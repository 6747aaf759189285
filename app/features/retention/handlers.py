"""Cleans expire versions beyond the history of a dataset; reaps delete the files of deleted datasets."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import msgspec
from litestar import post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.core.jobs.kinds.clean import CleanTask
from app.features.maintenance.service.requests import TableServiceRequests
from app.features.retention.service.reaper import Reap
from app.features.retention.values import ReapReport
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.kernel.format.definition.policy_rules import SECONDS_MAX, VERSIONS_MAX
from app.kernel.format.policies import HistoryPolicy


class CreateClean(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which versions to keep, instead of those of the dataset's `services.history`.

    Without members it is the history of the dataset; where that is null, all versions are kept.
    """

    versions: Annotated[int, msgspec.Meta(ge=1, le=VERSIONS_MAX)] | None = None
    """Keeps this many of the latest versions."""
    seconds: Annotated[int, msgspec.Meta(ge=0, le=SECONDS_MAX)] | None = None
    """Keeps the versions that were the latest at any time in this many seconds."""


_DEFAULTS: Final = CreateClean()
REAP_SECONDS_MAX: Final = 30.0


@post(
    "/datasets/{dataset:str}/cleans",
    operation_id="create_clean",
    summary="Clean a dataset",
    tags=["cleans"],
    status_code=202,
    opt=needs(KeyScope.MANAGE),
)
async def create_clean(
    path_dataset: Provided[Dataset],
    table_service_requests: Provided[TableServiceRequests],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateClean] = _DEFAULTS,
) -> JobReply:
    """Expires earlier versions, and removes the files that no retained version uses.

    Versions that have a name and versions that are being read stay readable. Instants beyond those that
    `services.timeline` keeps are archived. The latest version and the feed do not change, and no version is made. The
    job's `result` has the numbers of what was removed.
    """
    history = HistoryPolicy(versions=data.versions, seconds=data.seconds)
    task = CleanTask(history=None if history == HistoryPolicy() else history)
    return await acceptance.accept(path_dataset, partial(table_service_requests.start, path_dataset, task))


@post(
    "/storage/reaps",
    operation_id="create_reap",
    summary="Delete the files of deleted datasets now",
    tags=["cleans"],
    status_code=200,
    opt=needs(KeyScope.OPERATE, whole_tenant=True) | documented(description="Deleted."),
)
async def create_reap(reap: Provided[Reap], threads: Provided[Threads]) -> ReapReport:
    """Deletes the files of deleted datasets of all tenants, which a worker otherwise does about an hour later.

    It ends after 30 s. Unless the response is `complete`, request it again. While a backup runs, nothing is deleted.
    """
    return await threads.run(reap.deleted_datasets, REAP_SECONDS_MAX)
