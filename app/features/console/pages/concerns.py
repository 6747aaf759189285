"""What needs attention in a dataset. The first page, the list of datasets and the pages of a dataset show the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from app.features.console.rendering import counted, problem_word
from app.features.console.visit import PagePart, Visit
from app.kernel.format.identifiers import is_uuid

_FAILED_JOBS: Final = 20
"""The number of the last failed jobs that are read."""
_DAY: Final = timedelta(days=1)
_SERVER_ERROR: Final = 500
_STANDS_AFTER: Final = timedelta(minutes=1)
_OF_PROBLEMS: Final = {
    "source": ("bad", "the last round of its source has failed"),
    "view": ("bad", "its last refresh has failed"),
    "webhook": ("warning", "a webhook is paused because deliveries failed"),
    "late": ("warning", "is late: no commit came as expected"),
}


class Concern(NamedTuple):
    """Something that needs attention. `kind`: bad or warning. `at`: since when, if that is known.

    `name`: what it is about. `short`: the words beside the name of a dataset. `action`: what can be done at once:
    `compact` or empty.
    """

    kind: str
    words: str
    name: str
    href: str
    detail: str = ""
    at: str | None = None
    short: str = ""
    action: str = ""


class Health(NamedTuple):
    """The state of a dataset: the kind of its worst concern, and all of them in a few words."""

    kind: str
    words: str


class JobFailures(NamedTuple):
    """Failed jobs that no later job of their kind and dataset has made up for.

    `part`: what GET /jobs returned. `by_dataset`: their concerns, by the id of the dataset.
    """

    part: PagePart
    by_dataset: Mapping[str, Sequence[Concern]]


def concerns_of(
    overview: Mapping[str, Any], name: str, failures: Sequence[Concern], now: datetime
) -> list[Concern]:
    """What needs attention in a dataset, the worst first. `overview`: as GET /overview has it."""
    concerns = [*_of_numbers(overview, name, now), *failures]
    return sorted(concerns, key=lambda each: each.kind != "bad")


def health_of(overview: Mapping[str, Any], concerns: Sequence[Concern]) -> Health:
    """The state of a dataset with these concerns."""
    if concerns:
        return Health(concerns[0].kind, ", ".join(dict.fromkeys(each.short for each in concerns)))
    if overview["problems"] is None:
        return Health("idle", "seen in part")
    if overview["is_view"] and overview["committed_at"] is None:
        return Health("busy", "first refresh runs")
    return Health("good", "healthy")


async def job_failures(visit: Visit, dataset: str | None = None) -> JobFailures:
    """The failures of the range of time, or of a day, that stand. Those with the same error are one concern."""
    part = await visit.api.part("/jobs", dataset=dataset, unresolved=True, page_size=_FAILED_JOBS)
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for job in [] if part.problem else part.value["items"]:
        if _is_fault(job, visit.now - max(visit.span or _DAY, _DAY)):
            groups.setdefault((job["dataset"]["id"], job["kind"]), []).append(job)
    by_dataset: dict[str, list[Concern]] = {}
    for (dataset_id, _), group in groups.items():
        by_dataset.setdefault(dataset_id, []).extend(_of_jobs(group))
    return JobFailures(part, by_dataset)


def _is_fault(job: Mapping[str, Any], since: datetime) -> bool:
    """Whether the failure is a recent one, and not the producer's, whose expected version was no longer the latest."""
    at = job["finished_at"]
    conflict = (job["error"] or {}).get("expected_version") is not None
    return at is not None and datetime.fromisoformat(at) > since and not conflict


def _is_input(job: Mapping[str, Any]) -> bool:
    """Whether what the client sent has failed the job, such as a key that is there twice."""
    return job["kind"] == "write" and (job["error"] or {}).get("status", _SERVER_ERROR) < _SERVER_ERROR


def _of_jobs(alike: Sequence[Mapping[str, Any]]) -> Iterator[Concern]:
    """The concerns of failed jobs of a kind and a dataset, the latest first."""
    by_error: dict[str, list[Mapping[str, Any]]] = {}
    for job in alike:
        by_error.setdefault((job["error"] or {}).get("detail", ""), []).append(job)
    kind = alike[0]["kind"].replace("_", " ")
    for detail, jobs in by_error.items():
        words = f"a {kind} has failed" if len(jobs) == 1 else f"{len(jobs)} jobs ({kind}) have failed"
        last = jobs[0]
        state = "warning" if _is_input(last) else "bad"
        yield Concern(
            state, words, last["dataset"]["name"], f"/console/jobs/{last['id']}", detail, last["finished_at"],
            short=f"{kind} failed",
        )  # fmt: skip


def _of_numbers(overview: Mapping[str, Any], name: str, now: datetime) -> Iterator[Concern]:
    page = f"/console/datasets/{name}"
    for problem in overview["problems"] or ():
        kind, words = _OF_PROBLEMS.get(problem, ("warning", problem_word(problem)))
        at = overview["committed_at"] if problem == "late" else None
        yield Concern(kind, words, name, page, at=at, short=problem_word(problem))
    if count := overview["quarantined"]:
        words = f"{counted(count, 'record')} in quarantine"
        yield Concern("warning", words, name, f"{page}/quarantine", short=f"{count:,} in quarantine")
    if overview["lag"] and _stands(overview["committed_at"], now):
        who = consumer_words(overview["farthest_consumer"] or "")
        words = f"{who} is {counted(overview['lag'], 'change')} behind, and nothing new is written"
        yield Concern("warning", words, name, f"{page}/consumers", short=f"{overview['lag']:,} behind")


def consumer_words(name: str) -> str:
    """A consumer in words. `name`: that of its position; the service names its own by kind and id."""
    kind, colon, identity = name.partition(":")
    if colon and is_uuid(identity):
        return f"its {kind}"
    return f"the consumer {name}" if name else "a consumer"


def words_of_paused(webhook: str) -> str:
    """That a webhook of this name is paused."""
    return f"the webhook {webhook} is paused because deliveries failed"


def of_paused(concerns: Iterable[Concern], webhooks: Sequence[Mapping[str, Any]]) -> Iterator[Concern]:
    """The concerns, with the names and pages of webhooks that are paused. `webhooks`: as GET /webhooks has them."""
    by_dataset: dict[str, list[Mapping[str, Any]]] = {}
    for each in webhooks:
        if each["dataset"] and (each["failures"] or each["error"]):
            by_dataset.setdefault(each["dataset"]["name"], []).append(each)
    for concern in concerns:
        paused = by_dataset.get(concern.name, ()) if concern.short == problem_word("webhook") else ()
        if not paused:
            yield concern
        for each in paused:
            yield concern._replace(
                words=words_of_paused(each["name"]), href=f"/console/webhooks/{each['id']}"
            )


def _stands(committed_at: str | None, now: datetime) -> bool:
    return committed_at is not None and now - datetime.fromisoformat(committed_at) > _STANDS_AFTER


def all_concerns(
    datasets: Iterable[Mapping[str, Any]], failures: JobFailures, now: datetime
) -> dict[str, list[Concern]]:
    """What needs attention, by the id of the dataset. `datasets`: items of GET /overview."""
    return {
        each["id"]: concerns_of(each, each["dataset"], failures.by_dataset.get(each["id"], ()), now)
        for each in datasets
    }
