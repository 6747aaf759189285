"""Looking at jobs, waiting for them, following and cancelling them."""

import json
import threading
import time

import pytest

from tests.support.http import ORDERS, problem, upsert


@pytest.fixture
def job(client, orders):
    """The path of a job that waits for a worker."""
    return client.post(f"{orders}/writes", json=upsert({"id": 1})).headers["location"]


def test_job_returns_its_current_state(client, job, service):
    waiting = client.get(job)
    assert waiting.json()["state"] == "queued"
    assert int(waiting.headers["retry-after"]) >= 1
    service.work()
    done = client.get(job)
    assert (done.json()["state"], done.json()["committed_version"], done.json()["attempts"]) == (
        "succeeded",
        1,
        1,
    )
    assert done.json()["started_at"]
    assert done.json()["finished_at"]
    assert "retry-after" not in done.headers


def test_wait_ends_with_the_job(client, job, service):
    with service.working():
        began = time.monotonic()
        answer = client.get(job, params={"wait": 20})
    assert answer.json()["state"] == "succeeded"
    assert time.monotonic() - began < 10


def test_wait_ends_after_its_time(client, job):
    began = time.monotonic()
    assert client.get(job, params={"wait": 1}).json()["state"] == "queued"
    assert 0.9 < time.monotonic() - began < 5


@pytest.mark.parametrize("wait", ["-1", "61", "soon", "1.5"])
def test_wait_requires_a_number_of_seconds(client, job, wait):
    members = problem(client.get(job, params={"wait": wait}), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == "/wait"


def test_many_waits_occupy_no_threads(client, job, service):
    # More waiting requests than the service has threads: a new request is still answered at once.
    token = client.headers["authorization"].split()[1]

    def wait():
        with service.client(token) as waiting:
            assert waiting.get(job, params={"wait": 20}).json()["state"] == "cancelled"

    threads = [threading.Thread(target=wait) for _ in range(60)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    began = time.monotonic()
    assert client.get("/datasets").status_code == 200
    assert time.monotonic() - began < 2
    client.post(f"{job}/cancel")
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_cancelled_job_stays_cancelled(client, job, orders, service):
    answer = client.post(f"{job}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    service.work()
    assert client.get(job).json()["state"] == "cancelled"
    assert client.get(orders).json()["version"] == 0
    problem(client.post(f"{job}/cancel"), 409, "job-ended")


def test_ended_job_cannot_be_cancelled(client, job, service):
    service.work()
    problem(client.post(f"{job}/cancel"), 409, "job-ended")


@pytest.mark.parametrize("job_id", ["nothing", "01a1fc4e-fa09-7f57-bc96-fdc731ce19a5"])
def test_unknown_job_is_not_found(client, job_id):
    problem(client.get(f"/jobs/{job_id}"), 404, "not-found")


def events_of(stream):
    for block in "".join(stream.iter_text()).split("\n\n"):
        if block.startswith("event: state\n"):
            yield json.loads(block.split("data: ", 1)[1])


def test_events_report_the_states_and_end_with_the_job(client, job, service):
    with service.working(), client.stream("GET", f"{job}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        states = [state["state"] for state in events_of(stream)]
    assert states[-1] == "succeeded"
    assert states == sorted(set(states), key=["queued", "running", "succeeded"].index)


def test_events_of_an_ended_job_are_its_final_state(client, job, service):
    service.work()
    with client.stream("GET", f"{job}/events") as stream:
        assert [state["state"] for state in events_of(stream)] == ["succeeded"]


def test_jobs_are_listed_newest_first_with_filters(client, orders, service):
    made = [client.post(f"{orders}/writes", json=upsert({"id": number})).json()["id"] for number in range(3)]
    first = client.get("/jobs", params={"page_size": 2}).json()
    assert [job["id"] for job in first["items"]] == made[:0:-1]
    second = client.get("/jobs", params={"page_size": 2, "page_token": first["next_page_token"]}).json()
    assert ([job["id"] for job in second["items"]], second["next_page_token"]) == ([made[0]], None)
    client.post(f"/jobs/{made[0]}/cancel")
    found = client.get("/jobs", params={"dataset": "orders", "kind": "write", "state": ["queued", "running"]})
    assert [job["id"] for job in found.json()["items"]] == made[:0:-1]
    assert found.json()["items"][0] == client.get(f"/jobs/{made[2]}").json()
    assert client.get("/jobs", params={"kind": "export"}).json() == {"items": [], "next_page_token": None}


def test_a_failed_job_is_unresolved_until_a_later_one_of_its_kind_succeeds(client, orders, service):
    client.post("/datasets", json=ORDERS | {"name": "others"})

    def write(dataset, row, run=True):
        octets = {"Content-Type": "application/octet-stream"}
        upload = client.post(f"{dataset}/uploads", content=json.dumps(row), headers=octets).json()["id"]
        source = {"kind": "upload", "upload_id": upload, "format": "ndjson"}
        made = client.post(f"{dataset}/writes", json={"operation": "upsert", "source": source})
        if run:
            service.work()
        return made.json()["id"]

    def unresolved(**options):
        page = client.get("/jobs", params={"unresolved": True} | options).json()
        return [job["id"] for job in page["items"]]

    write(orders, {"id": 1})
    first, second = write(orders, {"id": "x"}), write(orders, {"id": "y"})
    elsewhere = write("/datasets/others", {"id": "z"})
    assert unresolved() == [elsewhere, second, first]
    assert unresolved(dataset="orders", kind="write", state="failed") == [second, first]
    assert unresolved(dataset="orders", kind="compaction") == unresolved(state="succeeded") == []
    page = client.get("/jobs", params={"unresolved": True, "page_size": 1}).json()
    assert unresolved(page_token=page["next_page_token"], page_size=1) == [second]
    # A job of another kind makes up for nothing, nor does a write that has not ended.
    client.post(f"{orders}/compactions", json={})
    service.work()
    write(orders, {"id": 2}, run=False)
    assert unresolved(dataset="orders") == [second, first]
    service.work()
    assert unresolved() == [elsewhere]


@pytest.mark.parametrize(
    ("options", "pointer"),
    [({"state": "done"}, "/state/0"), ({"kind": "merge"}, "/kind/0"), ({"status": "queued"}, "/status")],
)
def test_an_option_of_the_list_that_does_not_fit_is_pointed_at(client, options, pointer):
    members = problem(client.get("/jobs", params=options), 400, "invalid-request")
    assert [error["pointer"] for error in members["errors"]] == [pointer]


def test_jobs_of_a_dataset_that_is_not_there_are_not_found(client):
    problem(client.get("/jobs", params={"dataset": "nothing"}), 404, "not-found")


def test_job_has_the_present_name_of_its_dataset(client, orders, service):
    dataset = client.get(orders)
    accepted = client.post(f"{orders}/writes", json=upsert({"id": 1})).json()
    assert accepted["dataset"] == {"id": dataset.json()["id"], "name": "orders"}
    path = f"/jobs/{accepted['id']}"
    service.work()
    headers = {"If-Match": client.get(orders).headers["etag"]}
    assert client.patch(orders, json={"name": "purchases"}, headers=headers).status_code == 200
    identity = {"id": dataset.json()["id"], "name": "purchases"}
    assert client.get(path).json()["dataset"] == identity
    [job] = client.get("/jobs", params={"kind": "write"}).json()["items"]
    assert job["dataset"] == identity
    with client.stream("GET", f"{path}/events") as stream:
        assert [state["dataset"] for state in events_of(stream)] == [identity]
