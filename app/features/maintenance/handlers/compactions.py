"""Compactions: rewrite logs and small files as base files."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import msgspec
from litestar import post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.core.jobs.kinds.rewrite import CompactionTask
from app.features.maintenance.service.table_services import TableServiceRequests
from app.http.auth import needs
from app.http.dependencies import Provided


class CreateCompaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to compact."""

    partitions: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    """Globs of partition paths: the partitions that match one; all by default."""


_DEFAULTS: Final = CreateCompaction()


@post(
    "/datasets/{dataset:str}/compactions",
    operation_id="create_compaction",
    summary="Compact a dataset",
    tags=["compactions"],
    status_code=202,
    opt=needs(KeyScope.MANAGE),
)
async def create_compaction(
    path_dataset: Provided[Dataset],
    table_services: Provided[TableServiceRequests],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateCompaction] = _DEFAULTS,
) -> JobReply:
    """Folds logs, postponed writes, deletion vectors and small files into base files.

    It changes no row, and runs beside writes, to which it yields. It makes postponed writes visible, and with the
    producer `deferred` adds the changes of logs to the feed. If there is nothing to fold, no version is made. The job's
    `result` has what was rewritten.
    """
    task = msgspec.convert(data, CompactionTask, from_attributes=True)
    return await acceptance.accept(path_dataset, partial(table_services.start, path_dataset, task))
