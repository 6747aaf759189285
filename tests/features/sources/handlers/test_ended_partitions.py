"""Sources of mode `once` mark the partitions that they have filled as done, once they have read everything."""

from __future__ import annotations

import pytest

from tests.support.http import problem

VISITS = {
    "name": "visits",
    "schema": {"fields": [{"name": "id", "type": "int64"}, {"name": "day", "type": "date"}]},
    "record_key": ["day", "id"],
    "partition_by": ["day"],
    "services": {"partition_done": {"marker": True}},
}
SATURDAY, MONDAY, TUESDAY, WEDNESDAY = (f"2026-11-{day}" for day in (14, 16, 17, 18))


@pytest.fixture
def visits(client):
    answer = client.post("/datasets", json=VISITS)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


def write(client, service, visits, day, number):
    rows = {"kind": "rows", "rows": [{"id": number, "day": day}]}
    assert client.post(f"{visits}/writes", json={"operation": "upsert", "source": rows}).status_code == 202
    service.work()


def events(client, visits):
    found = client.get(f"{visits}/partitions/events").json()["events"]
    return [(event["kind"], event["partition"].removeprefix("day="), event["version"]) for event in found]


def test_partitions_are_done_once_everything_was_read(client, service, visits, incoming):
    write(client, service, visits, SATURDAY, 1)
    for number, day in enumerate((MONDAY, TUESDAY, MONDAY)):
        incoming.put(f"{number}.ndjson", {"id": number, "day": day})
    path = incoming.register(dataset="visits", partition_done=True, max_items=1)
    assert events(client, visits) == []
    source = incoming.run(path)
    assert (source["state"], source["rounds"], source["partition_done"]) == ("finished", 3, True)
    # The partition of the earlier write stays open, and none is done and opened again between two rounds.
    assert events(client, visits) == [("done", MONDAY, 4), ("done", TUESDAY, 4)]
    folder = service.settings.data_dir / "storage"
    assert len(list(folder.glob(f"*/{visits.rpartition('/')[2]}/data/*/_SUCCESS"))) == 2
    incoming.put("9.ndjson", {"id": 9, "day": WEDNESDAY})
    client.patch(path, json={"state": "active"})
    assert incoming.run(path)["state"] == "finished"
    assert events(client, visits)[2:] == [("done", WEDNESDAY, 5)]


def test_source_that_fails_ends_no_partition(client, visits, incoming):
    incoming.put("1.ndjson", {"id": 1, "day": MONDAY})
    incoming.put_bytes("2.ndjson", b'{"id')
    path = incoming.register(dataset="visits", partition_done=True, max_items=1)
    assert incoming.run(path)["state"] == "failed"
    assert events(client, visits) == []


@pytest.mark.parametrize(
    "members",
    [
        {"mode": "continuous"},
        {"dataset": "orders"},
        {"dataset": "fresh", "create": {"partition_by": ["day"]}},
    ],
)
def test_source_without_an_end_or_without_the_service_is_refused(client, orders, visits, incoming, members):
    body = incoming.source(**{"dataset": "visits", "partition_done": True} | members)
    errors = problem(client.post("/sources", json=body), 422, "invalid-source")["errors"]
    assert errors[0]["pointer"] == "/partition_done"
