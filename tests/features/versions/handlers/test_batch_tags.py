"""`services.batch_tags`: versions with batches of writers are tagged in their commits."""

from __future__ import annotations

import pytest

from tests.support.http import ORDERS, problem, upsert


@pytest.fixture
def tagged(client):
    answer = client.post("/datasets", json=ORDERS | {"services": {"batch_tags": {"keep": 2}}})
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


@pytest.fixture
def send(client, service, tagged):
    def run(note, *, work=True, **members):
        answer = client.post(f"{tagged}/writes", json=upsert({"id": 1, "note": note}) | members)
        assert answer.status_code in (200, 202), answer.text
        if work:
            service.work()
        return answer.headers["location"]

    return run


def batch(number, writer="stream"):
    return {"writer_id": writer, "batch_id": number}


def tags(client, tagged):
    return {each["name"]: each["version"] for each in client.get(f"{tagged}/tags").json()["items"]}


def test_latest_batches_are_tagged_in_their_commits(client, tagged, send):
    send("no batch")
    assert tags(client, tagged) == {}
    send("a", **batch(0))
    [tag] = client.get(f"{tagged}/tags").json()["items"]
    assert (tag["name"], tag["version"], tag["automatic"]) == ("batch-2", 2, True)
    assert client.get(f"{tagged}/rows", params={"tag": "batch-2"}).json()["rows"][0]["note"] == "a"
    send("b", **batch(1))
    # Sent again, without effect, and no batch.
    send("b", **batch(1))
    send("b", **batch(2))
    send("c")
    assert tags(client, tagged) == {"batch-2": 2, "batch-3": 3}
    send("d", **batch(3))
    assert tags(client, tagged) == {"batch-3": 3, "batch-5": 5}


def test_batches_of_one_commit_share_its_tag(client, service, tagged, send):
    send("a", work=False, **batch(0))
    send("b", work=False, **batch(0, "other"))
    service.work()
    assert tags(client, tagged) == {"batch-1": 1}


def test_names_of_users_stay(client, service, tagged, send):
    send("a")
    for name in ("batch-2", "batch-mine"):
        assert client.post(f"{tagged}/tags", json={"name": name, "version": 1}).status_code == 202
    service.work()
    for number in range(4):
        send(f"b{number}", **batch(number))
    assert tags(client, tagged) == {"batch-2": 1, "batch-mine": 1, "batch-4": 4, "batch-5": 5}


def test_no_batch_is_tagged_once_the_service_is_off(client, tagged, send):
    send("a", **batch(0))
    headers = {"If-Match": client.get(tagged).headers["etag"]}
    assert client.patch(tagged, json={"services": {}}, headers=headers).status_code == 200
    send("b", **batch(1))
    assert tags(client, tagged) == {"batch-1": 1}


@pytest.mark.parametrize("keep", [0, 10_001])
def test_number_of_tags_is_bounded(client, keep):
    answer = client.post("/datasets", json=ORDERS | {"services": {"batch_tags": {"keep": keep}}})
    assert problem(answer, 422, "invalid-dataset")["errors"][0]["pointer"] == "/services/batch_tags/keep"
