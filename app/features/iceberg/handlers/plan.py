"""Scans that the service plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from litestar import Response, delete, get, post
from litestar.params import JSONBody, PathParameter

from app.core.catalog.values import Dataset
from app.features.iceberg.handlers.catalogue import READS, below
from app.features.iceberg.plans import PlanRequest, PlanTaskRequest, ScanTasks
from app.features.iceberg.service.plans import PlanScans
from app.features.objects.ports import ServedTable
from app.http.body_stream import JSON
from app.http.dependencies import Provided
from app.http.limits.threads import PageThreads
from app.http.response import ApiResponse, encode_body

_BODY_BYTES_MAX: Final = 1024 * 1024
_TABLE: Final = ("tables", "{dataset:str}")
_PLAN: Final[Any] = Annotated[str, PathParameter(description="The id of a plan.")]


@post(
    below(*_TABLE, "plan"),
    operation_id="iceberg_plan",
    status_code=200,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=READS,
)
async def plan_scan(
    served_table: Provided[ServedTable],
    plan_scans: Provided[PlanScans],
    plan_threads: Provided[PageThreads],
    data: JSONBody[PlanRequest],
) -> Response[bytes]:
    """Returns the first files of a scan, and a task that has the others. A plan is completed at once."""
    return await _planned(plan_threads, lambda: plan_scans.plan(served_table, data))


@post(
    below(*_TABLE, "tasks"),
    operation_id="iceberg_plan_tasks",
    status_code=200,
    request_max_body_size=2 * _BODY_BYTES_MAX,
    opt=READS,
)
async def fetch_tasks(
    served_table: Provided[ServedTable],
    plan_scans: Provided[PlanScans],
    plan_threads: Provided[PageThreads],
    data: JSONBody[PlanTaskRequest],
) -> Response[bytes]:
    """Returns the next files of a plan."""
    return await _planned(plan_threads, lambda: plan_scans.tasks(served_table, data.plan_task))


@get(below(*_TABLE, "plan", "{plan:str}"), operation_id="iceberg_plan_result", opt=READS)
async def fetch_plan(
    served_table: Provided[ServedTable],
    plan_scans: Provided[PlanScans],
    plan_threads: Provided[PageThreads],
    plan: _PLAN,
) -> Response[bytes]:
    """Returns a plan, which is made again from its id."""
    return await _planned(plan_threads, lambda: plan_scans.plan_again(served_table, plan))


@delete(below(*_TABLE, "plan", "{plan:str}"), operation_id="iceberg_plan_end", opt=READS)
async def end_plan(path_dataset: Provided[Dataset], plan: _PLAN) -> None:
    """Ends a plan, of which nothing is kept."""


async def _planned(threads: PageThreads, plan: Callable[[], ScanTasks]) -> Response[bytes]:
    """A plan as a response. It is encoded in the thread that plans: it may be large."""
    return ApiResponse(await threads.run(lambda: encode_body(plan())), media_type=JSON)


HANDLERS: Final = (plan_scan, fetch_tasks, fetch_plan, end_plan)
