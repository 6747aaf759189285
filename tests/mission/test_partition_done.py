"""`partition_done` on a write: the partitions that it changes are done in the same commit."""

from __future__ import annotations

import pytest

from tests.support.http import problem

FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "day", "type": "date"},
    {"name": "note", "type": "string"},
]
VISITS = {
    "name": "visits",
    "schema": {"fields": FIELDS},
    "record_key": ["day", "id"],
    "partition_by": ["day"],
    "services": {"partition_done": {}},
}
MONDAY, TUESDAY, WEDNESDAY = "2026-11-16", "2026-11-17", "2026-11-18"


@pytest.fixture
def visits(client):
    answer = client.post("/datasets", json=VISITS)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


@pytest.fixture
def send(client, visits):
    def run(*days, note="a", **members):
        rows = [{"id": 1, "day": day, "note": note} for day in days]
        body = {"operation": "upsert", "source": {"kind": "rows", "rows": rows}, **members}
        answer = client.post(f"{visits}/writes", json=body)
        assert answer.status_code == 202, answer.text
        return answer.headers["location"]

    return run


def events(client, visits):
    found = client.get(f"{visits}/partitions/events").json()["events"]
    return [(event["kind"], event["partition"], event["version"], event["reason"]) for event in found]


def test_write_ends_the_partitions_that_it_changes(client, service, visits, send):
    send(MONDAY, TUESDAY)
    service.work()
    # Writes that wait share a commit, but for the one that ends partitions.
    send(WEDNESDAY)
    send(MONDAY, TUESDAY, note="b", partition_done=True)
    send(WEDNESDAY, note="b")
    service.work()
    done = [("done", f"day={day}", 3, "ended") for day in (MONDAY, TUESDAY)]
    assert events(client, visits) == done
    # Rows that are equal change nothing, neither the partition nor its mark.
    send(MONDAY, note="b", partition_done=True)
    service.work()
    assert events(client, visits) == done
    send(MONDAY, note="c", partition_done=True)
    service.work()
    assert events(client, visits)[2:] == [
        ("reopened", f"day={MONDAY}", 5, None),
        ("done", f"day={MONDAY}", 5, "ended"),
    ]


def test_partitions_end_only_with_a_commit(client, service, visits, send):
    send(MONDAY)
    service.work()
    failed = send(TUESDAY, operation="insert", mode="error_if_exists", partition_done=True)
    service.work()
    assert client.get(failed).json()["state"] == "failed"
    assert events(client, visits) == []


def test_partition_done_requires_its_service(client, orders):
    body = {
        "operation": "upsert",
        "partition_done": True,
        "source": {"kind": "rows", "rows": [{"id": 1, "note": "a"}]},
    }
    refused = problem(client.post(f"{orders}/writes", json=body), 400, "invalid-request")
    assert [error["pointer"] for error in refused["errors"]] == ["/partition_done"]
