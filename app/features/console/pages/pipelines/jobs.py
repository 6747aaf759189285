"""Jobs: the list, which refreshes itself, and everything of one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.pipelines.requests import read_list
from app.features.console.pages.pipelines.stage_chart import stage_bar, stage_chart, stage_spans
from app.features.console.visit import ApiProblem, Visit, path_of

KINDS: Final = (
    "write", "source_round", "refresh", "restore", "rollback", "compaction", "clustering", "clean", "analysis",
    "savepoint", "tag", "read", "export", "verify", "comparison",
)  # fmt: skip
"""The kinds of jobs, as `GET /jobs` has them."""
STATES: Final[Mapping[str, Sequence[str]]] = {
    "not ended": ("queued", "running"),
    "queued": ("queued",),
    "running": ("running",),
    "succeeded": ("succeeded",),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}
"""The states of jobs, by the words of the filter."""
_PAGE_SIZE: Final = 50
_UNFINISHED_MAX: Final = 500
_AGAIN: Final = {
    "compaction": "compactions",
    "clustering": "clusterings",
    "clean": "cleans",
    "analysis": "analyses",
    "verify": "verifications",
}
"""Where a job of each kind is requested, below its dataset."""
_FEATURES: Final = {"refresh": "/views", "source_round": "/sources", "export": "/exports"}


def waits(job: Mapping[str, Any], open_jobs: Sequence[Mapping[str, Any]]) -> int:
    """How many jobs of the same dataset were accepted before, and have not ended."""
    time = datetime.fromisoformat(job["created_at"])
    return sum(
        datetime.fromisoformat(each["created_at"]) < time and each["id"] != job["id"]
        for each in open_jobs
        if each["dataset"]["id"] == job["dataset"]["id"]
    )


async def _read_list(visit: Visit) -> Context:
    state = visit.query.get("state", "")
    page = await read_list(
        visit,
        "/jobs",
        page_size=_PAGE_SIZE,
        dataset=visit.query.get("dataset"),
        kind=visit.query.get("kind"),
        state=STATES.get(state, [state]) if state else None,
    )
    # The newest are first: once one is older than the range of time, so are all that follow.
    since = visit.since
    jobs = [
        each for each in page["items"] if since is None or datetime.fromisoformat(each["created_at"]) >= since
    ]
    open_jobs: Sequence[Any] = ()
    if any(each["state"] == "queued" for each in jobs):
        open_jobs = await _open_jobs(visit, None)
    rows = [
        {
            "job": each,
            "bar": stage_bar(each["timings"]),
            "before": waits(each, open_jobs) if each["state"] == "queued" else 0,
        }
        for each in jobs
    ]
    token = page["next_token"] if len(jobs) == len(page["items"]) else None
    return {**page, "next_token": token, "rows": rows, "kinds": KINDS, "states": STATES}


async def _open_jobs(visit: Visit, dataset: str | None) -> Sequence[Any]:
    part = await visit.api.part(
        "/jobs", dataset=dataset, state=STATES["not ended"], page_size=_UNFINISHED_MAX
    )
    return () if part.problem else part.value["items"]


async def _read_job(visit: Visit) -> Context:
    job = await visit.api.get(path_of("jobs", visit.variables["job"]))
    open_jobs = await _open_jobs(visit, job["dataset"]["id"]) if job["state"] == "queued" else ()
    key = None
    if job["actor"] and visit.may("manage"):
        part = await visit.api.part(path_of("keys", job["actor"]))
        key = None if part.problem else part.value["name"]
    return {
        "job": job,
        "actor": key or job["actor"],
        "before": waits(job, open_jobs),
        "spans": stage_spans(job["timings"]),
        "chart": stage_chart(job["timings"]),
        "ended": job["state"] not in STATES["not ended"],
        "again": job["kind"] in _AGAIN or job["kind"] == "refresh",
        "feature": _FEATURES.get(job["kind"]),
    }


async def _cancel(visit: Visit, _: ConsoleForm) -> Done:
    job = await visit.api.send("POST", path_of("jobs", visit.variables["job"], "cancel"))
    return Done(to=f"/console/jobs/{job['id']}", notice=f"The job is {job['state']}.")


async def _run_again(visit: Visit, _: ConsoleForm) -> Done:
    job = await visit.api.get(path_of("jobs", visit.variables["job"]))
    if job["kind"] == "refresh":
        path = path_of("views", job["dataset"]["id"], "refreshes")
    elif job["kind"] in _AGAIN:
        path = path_of("datasets", job["dataset"]["id"], _AGAIN[job["kind"]])
    else:
        raise ApiProblem(
            {
                "type": "/problems/invalid-request",
                "title": "The request is not valid",
                "status": 400,
                "detail": f"a job of kind {job['kind']} cannot be run again: send its request again",
            }
        )
    new_job = await visit.api.send("POST", path)
    return Done(to=f"/console/jobs/{new_job['id']}", notice="A new job was accepted.")


_LIST: Final = ConsolePage(path="/jobs", template="jobs.html", read=_read_list)
_JOB: Final = ConsolePage(path="/jobs/{job:str}", template="job.html", read=_read_job)
PAGES: Final = (_LIST, _JOB)
ACTIONS: Final = (
    ConsoleAction(path="/jobs/{job:str}/cancel", run=_cancel, page=_JOB),
    ConsoleAction(path="/jobs/{job:str}/again", run=_run_again, page=_JOB),
)
