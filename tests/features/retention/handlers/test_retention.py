"""How long a feed is kept, and what its readers see of that."""

import pytest

from app.core.idempotency.repository import ReplyStore
from app.features.retention.repository.feed import RetentionStore
from app.features.retention.service.feed import Retain
from app.infra.files.storage import LocalStorage
from tests.support.expired_rows import expire_rows
from tests.support.http import EVENTS, ORDERS, problem, upsert, without_engines
from tests.support.shares import share
from tests.support.streams import blocks

# The feed of the fixture has two commits: two appends, then a correction.


@pytest.fixture
def retain(service, tmp_path):
    """Runs a round of retention."""
    retain = Retain(
        feeds=RetentionStore(service.database),
        keys=ReplyStore(service.database),
        rows=expire_rows(service.database, LocalStorage(tmp_path), job_keep_seconds=3600),
        follower_lag_seconds=3600,
    )
    return retain.run


@pytest.fixture
def keep(client, orders):
    """Gives the feed another retention; the answer."""

    def run(retention):
        etag = client.get(orders).headers["etag"]
        body = {"changelog": {"retention": retention}}
        return client.patch(orders, json=body, headers={"If-Match": etag})

    return run


def test_retention_is_registered(client):
    kept = {"producer": "full", "retention": {"seconds": 86400, "changes": 1000}}
    answer = client.post("/datasets", json={**ORDERS, "changelog": kept})
    assert answer.status_code == 201, answer.text
    assert answer.json()["changelog"].items() >= kept.items()
    without = client.post("/datasets", json=EVENTS).json()
    assert without["changelog"]["retention"] is None
    assert without["earliest_offset"] == 0


def test_retention_change_requires_the_current_version(client, orders, keep):
    changed = keep({"seconds": 60})
    assert changed.status_code == 200, changed.text
    assert changed.headers["etag"] == '"1"'
    assert changed.json() == without_engines(client.get(orders).json())
    assert changed.json()["changelog"]["retention"] == {"seconds": 60, "changes": None}
    assert client.get(f"{orders}/schema").json()["id"] == 1
    [instant] = client.get(f"{orders}/timeline").json()["items"]
    assert (instant["version"], instant["action"]) == (1, "schema")
    assert keep(None).json()["changelog"]["retention"] is None
    body = {"changelog": {"retention": None}}
    problem(client.patch(orders, json=body), 428, "precondition-required")
    problem(client.patch(orders, json=body, headers={"If-Match": '"1"'}), 412, "precondition-failed")


def test_schema_and_retention_change_together_or_not_at_all(client, orders):
    add = {"kind": "add", "field": {"name": "more", "type": "string"}}
    both = {"changes": [add], "changelog": {"retention": {"changes": 5}}}
    answer = client.patch(orders, json=both, headers={"If-Match": '"0"'})
    assert answer.json()["version"] == 1
    assert answer.json()["changelog"]["retention"] == {"seconds": None, "changes": 5}
    assert client.get(f"{orders}/schema").json()["id"] == 2
    for body, code in (
        ({"changes": [add], "changelog": {"retention": None}}, "schema-change-refused"),
        ({"changes": [{"kind": "drop", "name": "more"}], "changelog": {"retention": {}}}, "invalid-dataset"),
        ({}, "schema-change-refused"),
    ):
        problem(client.patch(orders, json=body, headers={"If-Match": '"1"'}), 422, code)
    assert without_engines(client.get(orders).json()) == answer.json()


@pytest.mark.parametrize(
    ("changelog", "pointer"),
    [
        ({"retention": {}}, "/changelog/retention"),
        ({"retention": {"seconds": 0}}, "/changelog/retention/seconds"),
        ({"retention": {"seconds": 2**31}}, "/changelog/retention/seconds"),
        ({"retention": {"changes": 0}}, "/changelog/retention/changes"),
        ({"retention": {"changes": 1}, "producer": "none"}, "/changelog/retention"),
    ],
)
def test_invalid_retention_is_refused_with_its_pointer(client, changelog, pointer):
    table = {**ORDERS, "name": "wrong", "table_type": "merge_on_read"}
    answer = client.post("/datasets", json={**table, "changelog": changelog})
    refused = problem(answer, 422, "invalid-dataset")
    assert [error["pointer"] for error in refused["errors"]] == [pointer]


@share(2)
def test_expired_changes_are_gone_and_rows_stay(client, service, feed, orders, keep, retain):
    rows = client.get(f"{orders}/rows").json()["rows"]
    before = client.get(feed).json()["changes"]
    assert keep({"changes": 2}).status_code == 200
    for _ in range(2):
        retain()
        assert client.get(orders).json()["earliest_offset"] == 2
        for path in (feed, f"{feed}/events"):
            for since in (None, 0, 1):
                answer = client.get(path, params={} if since is None else {"since": since})
                gone = problem(answer, 410, "offset-expired")
                assert (gone["since"], gone["earliest"]) == (since or 0, 2)
        for since in (2, "earliest"):
            page = client.get(feed, params={"since": since}).json()
            assert page["changes"] == before[2:]
            assert (page["next_since"], page["earliest"]) == (4, 2)
    assert client.get(f"{orders}/rows").json()["rows"] == rows
    # Versions before the cut are read as ever: only the feed is shorter.
    assert len(client.get(f"{orders}/rows", params={"version": 1}).json()["rows"]) == 2
    client.post(f"{orders}/writes", json=upsert({"id": 3, "note": "new"}))
    service.work()
    assert [change["offset"] for change in client.get(feed, params={"since": 4}).json()["changes"]] == [4]


@share(2)
def test_consumer_retains_the_changes_it_has_not_read(client, feed, orders, keep, retain):
    path = f"{orders}/consumers/c"
    client.put(path, json={"offset": "earliest"})
    keep({"changes": 1})
    retain()
    assert client.get(orders).json()["earliest_offset"] == 0
    page = client.get(feed, params={"consumer": "c", "limit": 2}).json()
    client.put(path, json={"offset": page["next_since"]}, headers={"If-Match": '"1"'})
    retain()
    assert client.get(orders).json()["earliest_offset"] == 2
    consumer = client.get(path).json()
    assert (consumer["earliest"], consumer["expired"], consumer["lag"]["changes"]) == (2, False, 2)


def test_changes_are_read_from_the_position_of_a_consumer(client, feed, orders):
    path = f"{orders}/consumers/c"
    client.put(path, json={"offset": 1})
    page = client.get(feed, params={"consumer": "c", "limit": 1}).json()
    assert [change["offset"] for change in page["changes"]] == [1]
    # Reading is not committing.
    assert client.get(feed, params={"consumer": "c"}).json()["changes"][0]["offset"] == 1
    text = client.get(f"{feed}/events", params={"consumer": "c", "until": 4}).text
    assert [position for position, _ in blocks(text)] == [2, 2, 4]
    resumed = client.get(
        f"{feed}/events", params={"consumer": "c", "until": 4}, headers={"Last-Event-ID": "2"}
    ).text
    assert [position for position, _ in blocks(resumed)] == [2, 4]
    for there in (feed, f"{feed}/events"):
        problem(client.get(there, params={"consumer": "none"}), 404, "not-found")
        both = problem(client.get(there, params={"consumer": "c", "since": 0}), 400, "invalid-request")
        assert both["errors"][0]["pointer"] == "/consumer"
