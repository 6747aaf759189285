"""Starting positions of the feed by version and by time, in pages and streams."""

from datetime import datetime, timedelta
from itertools import combinations

import pytest
from sqlalchemy import text

from app.core.changes.positions import FromVersion, SnapshotPosition
from app.core.changes.service.feed_starts import FeedStarts
from tests.support.http import problem, upsert
from tests.support.stored_feed import DATASET
from tests.support.streams import blocks, feed_of

# The feed of the fixture has four changes: two appends of version 1, then a correction of version 2.


@pytest.fixture
def committed(client, feed):
    """The commit times by version."""
    return {change["version"]: change["system_time"] for change in client.get(feed).json()["changes"]}


def just_after(time):
    return (datetime.fromisoformat(time) + timedelta(microseconds=1)).isoformat()


def offsets(client, feed, **start):
    """The offsets that a page has from a start on, after a check that the stream has the same."""
    page = client.get(feed, params=start).json()
    assert page["next_since"] == 4
    events = client.get(f"{feed}/events", params={**start, "until": 4})
    found = [change["offset"] for change in page["changes"]]
    assert [change["offset"] for _, change in blocks(events.text) if change is not None] == found
    return found


def test_a_version_starts_at_its_first_change(client, feed):
    whole = [0, 1, 2, 3]
    assert offsets(client, feed, since_version=0) == offsets(client, feed, since_version=1) == whole
    assert offsets(client, feed, since_version=2) == [2, 3]
    assert offsets(client, feed, since_version=3) == []


def test_a_time_starts_at_the_first_change_committed_then_or_later(client, feed, committed):
    assert offsets(client, feed, since_time="1970-01-01T00:00:00Z") == [0, 1, 2, 3]
    assert offsets(client, feed, since_time=committed[1]) == [0, 1, 2, 3]
    assert offsets(client, feed, since_time=just_after(committed[1])) == [2, 3]
    assert offsets(client, feed, since_time=committed[2]) == [2, 3]
    assert offsets(client, feed, since_time=just_after(committed[2])) == []


def test_a_longpoll_waits_for_the_next_version(client, feed, orders, service):
    idle = client.get(feed, params={"since_version": 3, "feed": "longpoll", "timeout": 0}).json()
    assert (idle["changes"], idle["next_since"]) == ([], 4)
    assert client.post(f"{orders}/writes", json=upsert({"id": 9, "note": "d"})).status_code == 202
    service.work()
    page = client.get(feed, params={"since_version": 3, "feed": "longpoll", "timeout": 20}).json()
    assert [change["version"] for change in page["changes"]] == [3]


def test_a_start_beyond_the_head_is_refused(client, feed):
    for path in (feed, f"{feed}/events", f"{feed}/corrected"):
        members = problem(client.get(path, params={"since_version": 4}), 409, "offset-ahead")
        assert (members["since_version"], members["head_version"]) == (4, 2)
        problem(client.get(path, params={"since_time": "2999-01-01T00:00:00Z"}), 409, "offset-ahead")


def test_expired_start_is_gone_in_pages_streams_and_corrections(client, feed, committed, service):
    dataset = client.get(feed.removesuffix("/changes")).json()["id"]
    with service.database.relay() as connection:
        tenant = connection.execute(
            text("SELECT tenant_id FROM heads WHERE dataset_id = :dataset"), {"dataset": dataset}
        ).scalar_one()
    with service.database.tenant(str(tenant)) as connection:
        connection.execute(
            text("UPDATE heads SET earliest_offset = 2 WHERE dataset_id = :dataset"), {"dataset": dataset}
        )
    for path in (feed, f"{feed}/events", f"{feed}/corrected"):
        for start in ({"since_version": 1}, {"since_time": committed[1]}):
            members = problem(client.get(path, params=start), 410, "offset-expired")
            assert (members["since"], members["earliest"]) == (0, 2)
        assert client.get(path, params={"since_version": 2, "until": 4}).status_code == 200


def test_at_most_one_start_is_accepted(client, feed, committed):
    starts = {"since": 0, "since_version": 1, "since_time": committed[1], "consumer": "c"}
    for path in (feed, f"{feed}/events"):
        for first, second in combinations(starts, 2):
            both = {name: starts[name] for name in (first, second)}
            members = problem(client.get(path, params=both), 400, "invalid-request")
            assert members["errors"][0]["pointer"] == f"/{second}", both


def test_an_event_id_overrides_every_start(client, feed):
    parameters = {"since_version": 99, "until": 4}
    resumed = client.get(f"{feed}/events", params=parameters, headers={"Last-Event-ID": "2"})
    assert [position for position, _ in blocks(resumed.text)] == [2, 4]


def test_the_dataset_is_read_again_if_the_start_was_committed_since():
    stored = feed_of(2)
    starts = FeedStarts(catalog=stored, at_commit=lambda *_: 4, of_consumer=lambda *_: 4)
    for find in (lambda: starts.find(DATASET, FromVersion(3)), lambda: starts.consumer(DATASET, "c")):
        dataset, position = find()
        assert (position, dataset.next_offset) == (4, 4)
    within = SnapshotPosition(version=DATASET.version + 1)
    starts = FeedStarts(catalog=stored, at_commit=lambda *_: 4, of_consumer=lambda *_: within)
    assert starts.consumer(DATASET, "c") == (stored.get("t", "d"), within)


# The rows of a version, then the changes after it


def read_from_snapshot(client, feed, **options):
    """All pages from the snapshot to the head."""
    since, pages = "snapshot", []
    while not pages or pages[-1]["pending"]:
        pages.append(client.get(feed, params={"since": since, **options}).json())
        since = pages[-1]["next_since"]
    return pages


def test_snapshot_is_followed_by_the_changes_after_it(client, feed, orders, service):
    whole = client.get(feed, params={"since": "snapshot"}).json()
    table = client.get(f"{orders}/rows").json()["rows"]
    assert sorted(change["row"]["id"] for change in whole["changes"]) == sorted(row["id"] for row in table)
    assert all(change["op"] == "+A" and change["row"] in table for change in whole["changes"])
    assert (whole["next_since"], whole["pending"]) == (4, 0)
    first = client.get(feed, params={"since": "snapshot", "limit": 1}).json()
    assert first["next_since"].startswith("snapshot:2:")
    assert first["pending"] >= 1
    # What is written meanwhile is not among the rows, but after them.
    assert client.post(f"{orders}/writes", json=upsert({"id": 9, "note": "d"})).status_code == 202
    service.work()
    rest = client.get(feed, params={"since": first["next_since"], "limit": 1}).json()
    assert first["changes"] + rest["changes"] == whole["changes"]
    assert (rest["next_since"], rest["pending"]) == (4, 1)
    assert [each["row"]["id"] for each in client.get(feed, params={"since": 4}).json()["changes"]] == [9]


def test_snapshot_of_an_empty_table_is_its_feed(client, orders):
    page = client.get(f"{orders}/changes", params={"since": "snapshot"}).json()
    assert (page["changes"], page["next_since"], page["pending"]) == ([], 0, 0)


def test_cut_feed_can_be_joined_by_its_snapshot(client, feed, orders, service):
    dataset = client.get(orders).json()["id"]
    with service.database.relay() as connection:
        tenant = connection.execute(
            text("SELECT tenant_id FROM heads WHERE dataset_id = :dataset"), {"dataset": dataset}
        ).scalar_one()
    with service.database.tenant(str(tenant)) as connection:
        connection.execute(
            text("UPDATE heads SET earliest_offset = 4 WHERE dataset_id = :dataset"), {"dataset": dataset}
        )
    problem(client.get(feed), 410, "offset-expired")
    pages = read_from_snapshot(client, feed, limit=1)
    rows = [change["row"] for page in pages for change in page["changes"]]
    assert sorted(rows, key=repr) == sorted(client.get(f"{orders}/rows").json()["rows"], key=repr)
    problem(client.get(feed, params={"since": "snapshot:1:0:0"}), 410, "offset-expired")


def test_stream_of_a_snapshot_resumes_after_any_event(client, feed, orders, service):
    assert client.post(f"{orders}/writes", json=upsert({"id": 9, "note": "d"})).status_code == 202
    service.work()
    # The stream ends where the changes after the version would begin.
    ended = {"until": 5}
    whole = blocks(client.get(f"{feed}/events", params={"since": "snapshot:2:0:0", **ended}).text)
    ops = [change["op"] for _, change in whole if change is not None]
    assert ops == ["+A"] * len(client.get(f"{orders}/rows", params={"version": 2}).json()["rows"]) + ["+A"]
    for number, (position, _) in enumerate(whole, 1):
        headers = {"Last-Event-ID": str(position)}
        rest = client.get(f"{feed}/events", params=ended, headers=headers)
        assert rest.status_code == (204 if number == len(whole) else 200)
        found = [change for _, change in blocks(rest.text) if change is not None]
        assert found == [change for _, change in whole[number:] if change is not None]


def test_snapshot_in_every_media_type_has_the_same_position(client, feed):
    for media_type in ("application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"):
        answer = client.get(feed, params={"since": "snapshot", "limit": 1}, headers={"Accept": media_type})
        assert answer.headers["headwater-next-since"].startswith("snapshot:2:")


def test_longpoll_of_a_snapshot_does_not_wait_for_rows(client, feed):
    options = {"feed": "longpoll", "timeout": 20, "where": "note = 'of no row'", "until": 4}
    page = client.get(feed, params={"since": "snapshot", **options}).json()
    assert (page["changes"], page["next_since"]) == ([], 4)


def test_snapshot_positions_are_checked(client, feed):
    for path in (feed, f"{feed}/events"):
        problem(client.get(path, params={"since": "snapshot:9:0:0"}), 409, "offset-ahead")
        for since in ("snapshot:", "snapshot:1", "snapshot:1:2:x", "snapshots"):
            problem(client.get(path, params={"since": since}), 400, "invalid-request")
        for other in ({"since_version": 1}, {"consumer": "c"}):
            problem(client.get(path, params={"since": "snapshot", **other}), 400, "invalid-request")
