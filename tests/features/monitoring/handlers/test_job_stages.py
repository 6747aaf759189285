"""What the stages of a job took, and how often it was planned again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from tests.support.http import upsert
from tests.support.lakehouse import commit_of, message
from tests.support.service import Service
from tests.support.store_fixtures import Stores

WRITE_STAGES = {"accept", "wait", "claim", "decode", "plan", "lookup", "merge", "commit", "total"}


def ended(client: httpx2.Client, service: Service, answer: httpx2.Response) -> dict[str, Any]:
    service.work()
    job: dict[str, Any] = client.get(f"/jobs/{answer.json()['id']}").json()
    return job


def observations(operator: httpx2.Client, name: str, **labels: str) -> float:
    text = operator.get("/metrics").text
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items())


def test_job_of_a_write_has_its_stages(
    client: httpx2.Client, new_client: Callable[..., httpx2.Client], orders: str, service: Service
) -> None:
    operator = new_client(("operate",))
    count, total = "headwater_job_stage_seconds_count", {"stage": "total", "kind": "write"}
    before = observations(operator, count, **total)
    commits = observations(operator, "headwater_commits_total")
    answer = client.post(f"{orders}/writes", json=upsert({"id": 1}))
    assert set(answer.json()["timings"]) == {"accept"}
    job = ended(client, service, answer)
    timings = job["timings"]
    assert set(timings) - {"lookup"} == WRITE_STAGES - {"lookup"}
    assert timings["merge"] + timings["commit"] <= timings["total"] + 2
    assert job["replans"] == 0
    # Jobs of other tests may end in this process meanwhile.
    assert observations(operator, count, **total) >= before + 1
    assert observations(operator, "headwater_commits_total") >= commits + 1


def test_job_that_fails_has_the_stages_that_are_known(
    client: httpx2.Client, new_client: Callable[..., httpx2.Client], orders: str, service: Service
) -> None:
    operator = new_client(("operate",))
    finished = {"kind": "write", "state": "failed"}
    before = observations(operator, "headwater_jobs_finished_total", **finished)
    ended(client, service, client.post(f"{orders}/writes", json=upsert({"id": 1})))
    again = {"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 1}]}}
    job = ended(client, service, client.post(f"{orders}/writes", json=again))
    assert job["state"] == "failed"
    assert set(job["timings"]) == {"accept", "wait", "total"}
    assert observations(operator, "headwater_jobs_finished_total", **finished) >= before + 1


def test_commit_stores_the_stages_of_its_jobs_and_how_often_it_was_planned(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job = running()
    commit = commit_of([job], [message()])
    [outcome] = commit.outcomes
    stores.timeline.publish_one(
        tenant_id,
        replace(
            commit,
            outcomes=(replace(outcome, timings={"accept": 4}),),
            timings={"merge": 7},
            began=0.0,
            replans=3,
        ),
    )
    stored = stores.jobs.get(tenant_id, job.id)
    assert stored.replans == 3
    assert stored.timings is not None
    assert stored.timings.pop("commit") > 0
    assert stored.timings == {"accept": 4, "merge": 7}
