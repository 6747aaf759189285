"""Pages of jobs: the list with its filters, everything of one job, cancelling and running again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2

from app.features.console.pages.pipelines.stage_chart import stage_bar, stage_chart, stage_spans
from app.features.console.rendering import problem_facts
from tests.support.http import upsert
from tests.support.pages import PageElement, page, submit
from tests.support.service import Service


def listed(root: PageElement) -> list[list[str]]:
    """The texts of the rows of the list."""
    return root.one("table").rows()[1:]


def test_the_list_has_the_jobs_of_the_tenant(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}, {"id": 2}))
    service.work()
    [row] = listed(page(visitor, "/console/jobs"))
    kind, state, dataset, waits, _, took, rows, attempts, _ = row
    assert (kind, dataset, state, waits, rows, attempts) == (
        "write upsert",
        "orders",
        "succeeded",
        "",
        "2",
        "1",
    )
    assert took.endswith("s")
    bar = page(visitor, "/console/jobs").one("svg", class_="stages")
    assert "commit" in bar.attributes["aria-label"]


def test_a_queued_job_waits_for_a_worker_or_for_earlier_ones(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    first = client.post(f"{orders}/writes", json=upsert({"id": 1})).headers["location"]
    second = client.post(f"{orders}/writes", json=upsert({"id": 2})).headers["location"]
    waits = [row[3] for row in listed(page(visitor, "/console/jobs"))]
    assert waits == ["1 earlier job", "a worker"]
    assert "waits for a worker" in page(visitor, f"/console{first}").text
    root = page(visitor, f"/console{second}")
    assert "waits for 1 earlier job of the dataset" in root.text
    assert root.link("1 earlier job") == "/console/jobs?dataset=orders&state=not+ended"


def test_a_failed_job_has_all_facts_of_its_problem(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 7}))
    insert = upsert({"id": 7}) | {"operation": "insert"}
    job = client.post(f"{orders}/writes", json=insert).headers["location"]
    service.work()
    box = page(visitor, f"/console{job}").one("div", class_="problem")
    assert [each.text for each in box.all("dt")] == ["keys", "duplicates"]
    assert [each.text for each in box.all("dd")] == ['[{"id":7}]', "1"]
    assert "1 key of the insert is in the table already" in box.text


def test_facts_of_a_problem_are_bounded() -> None:
    facts = problem_facts({"detail": "x", "errors": [], "winner": None, "keys": ["k" * 9] * 900})
    assert list(facts) == ["keys"]
    assert len(facts["keys"]) == 500
    assert len(problem_facts({f"fact_{number}": number for number in range(99)})) == 12


def test_the_filters_are_those_of_the_address(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    client.post(f"{orders}/compactions")
    service.work()
    client.post(f"{orders}/writes", json=upsert({"id": 2}))
    assert [row[0] for row in listed(page(visitor, "/console/jobs?kind=compaction"))] == ["compaction"]
    assert [row[1] for row in listed(page(visitor, "/console/jobs?state=not+ended"))] == ["queued"]
    root = page(visitor, "/console/jobs?dataset=orders&kind=write&state=succeeded")
    assert [row[1] for row in listed(root)] == ["succeeded"]
    assert [each.text for each in root.one("select", id="filter-kind").all("option", selected="")] == [
        "write"
    ]
    assert "No such job" in page(visitor, "/console/jobs?kind=restore").text


def test_unknown_filters_are_problems(visitor: httpx2.Client, orders: str) -> None:
    for query, status in (("dataset=nothing", 404), ("kind=dance", 400), ("state=lost", 400)):
        assert page(visitor, f"/console/jobs?{query}", status=status).one("div", role="alert")
    assert page(visitor, "/console/jobs/0", status=404).one("div", role="alert")


def test_without_jobs_the_list_leads_to_a_first_write(stranger: httpx2.Client) -> None:
    assert "headwater write" in page(stranger, "/console/jobs").one("div", class_="empty").text


def test_the_page_of_a_job_has_all_of_it(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    body = upsert({"id": 1, "note": "a"}) | {"metadata": {"run": "<b>nightly</b>"}}
    job = client.post(f"{orders}/writes", json=body)
    assert job.status_code == 202, job.text
    service.work()
    root = page(visitor, f"/console{job.headers['location']}")
    figures = {each.one("dt").text: each.all("dd")[0].text for each in root.all("div", class_="figure")}
    assert (figures["Attempts"], figures["Version"], figures["Inserted"]) == ("1", "1", "1")
    assert figures["Changes"] == "0 to 0"
    stages = [row[0] for row in root.one("table").rows()[1:]]
    assert stages[:2] == ["wait", "claim"]
    assert "commit" in stages
    assert '"run": "<b>nightly</b>"' in root.text
    assert root.all("b") == []
    assert "tenant-" in root.text


def test_a_failed_job_has_its_problem_as_a_sentence(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    text = b'{"id": 1}\n{"id": "<i>no number</i>"}\n'
    upload = client.post(
        f"{orders}/uploads", content=text, headers={"Content-Type": "application/octet-stream"}
    ).json()["id"]
    body = {"operation": "upsert", "source": {"kind": "upload", "upload_id": upload, "format": "ndjson"}}
    job = client.post(f"{orders}/writes", json=body).headers["location"]
    service.work()
    box = page(visitor, f"/console{job}").one("div", role="alert")
    assert "schema-mismatch" in box.text
    assert box.all("i") == []
    assert "failed" in listed(page(visitor, "/console/jobs?state=failed"))[0][1]


def test_a_job_that_has_not_ended_can_be_cancelled(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    job = client.post(f"{orders}/writes", json=upsert({"id": 1})).headers["location"]
    root = page(visitor, f"/console{job}")
    answer = submit(visitor, root, f"/console{job}/cancel")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/console{job}")
    assert client.get(job).json()["state"] == "cancelled"
    again = submit(visitor, root, f"/console{job}/cancel")
    assert again.status_code == 409
    assert "job-ended" in again.text


def test_a_service_can_be_run_again(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    job = client.post(f"{orders}/compactions").headers["location"]
    write = client.get("/jobs", params={"kind": "write"}).json()["items"][0]["id"]
    service.work()
    answer = submit(visitor, page(visitor, f"/console{job}"), f"/console{job}/again")
    assert answer.status_code == 303
    started = answer.headers["location"].removeprefix("/console")
    assert started != job
    assert client.get(started).json()["kind"] == "compaction"
    root = page(visitor, f"/console/jobs/{write}")
    assert [each.text for each in root.all("button")] == ["Sign out"]


def test_a_key_sees_and_does_what_it_may(
    client: httpx2.Client, orders: str, restricted: Callable[..., httpx2.Client]
) -> None:
    job = client.post(f"{orders}/writes", json=upsert({"id": 1})).headers["location"]
    reader = restricted({"datasets": "orders"})
    assert [row[2] for row in listed(page(reader, "/console/jobs"))] == ["orders"]
    assert [each.text for each in page(reader, f"/console{job}").all("button")] == ["Sign out"]
    other = restricted({"datasets": "others"})
    assert "There is no job yet" in page(other, "/console/jobs").text
    assert page(other, f"/console{job}", status=404)


def test_a_key_that_sees_a_part_of_a_dataset_sees_no_jobs_of_others(
    client: httpx2.Client, orders: str, restricted: Callable[..., httpx2.Client]
) -> None:
    job = client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "secret"})).headers["location"]
    part = restricted({"datasets": "orders", "where": "id = 2", "mask": ["note"]})
    assert "secret" not in page(part, "/console/jobs").text
    assert page(part, f"/console{job}", status=404).one("div", role="alert")


def test_stages_follow_one_another_and_the_rest_is_work() -> None:
    spans = stage_spans({"commit": 4, "wait": 10, "decode": 6, "total": 25, "lookup": 3, "accept": 2})
    assert [tuple(each) for each in spans] == [
        ("wait", 0, 10),
        ("decode", 10, 6),
        ("commit", 16, 4),
        ("work", 20, 5),
    ]
    assert stage_spans({"wait": 10, "total": 9})[-1].name == "wait"
    assert stage_bar({}) == stage_chart({}) == stage_bar({"total": 0}) == ""
    assert stage_bar({"wait": 10, "total": 20}).count("<rect") == 2


def test_the_page_of_a_reader_names_what_it_shows(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    service.work()
    terminal = page(visitor, "/console/jobs?dataset=orders").one("footer")
    assert "headwater jobs" in terminal.text
    assert "/jobs?dataset=orders" in terminal.text
