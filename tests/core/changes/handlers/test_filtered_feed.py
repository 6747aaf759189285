"""The feed with a filter, over HTTP: pages, long polls and streams."""

import io
import json
import threading
import time

import pyarrow.ipc as ipc
import pytest

from app.core.changes.handlers import events as change_events
from app.core.changes.service import read_changes
from app.kernel.changelog import changelog_scan
from app.kernel.changelog.delivery_forms import ChangeForm
from tests.core.changes.handlers.test_change_events import blocks, followed, following
from tests.support.http import problem, upsert

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
EVERY_FORM = pytest.mark.parametrize("form", [form.value for form in ChangeForm])


@pytest.fixture
def small_scans(monkeypatch):
    """Every page reads one change or pair."""
    monkeypatch.setattr(read_changes, "SCANNED_CHANGES_MAX", 1)
    monkeypatch.setattr(changelog_scan, "_SCANNED_MIN", 1)


def offsets(page):
    return [change["offset"] for change in page["changes"]]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("note = 'a'", {"a", "c"}),
        ("note = 'c'", {"a", "c"}),
        ("note = 'b'", {"b"}),
        ("id = 2 OR note = 'c'", {"a", "b", "c"}),
        ("note IS NULL", set()),
    ],
)
def test_pair_is_selected_whole_when_either_half_matches(client, feed, where, expected):
    page = client.get(feed, params={"where": where}).json()
    assert {change["row"]["note"] for change in page["changes"]} == expected
    whole = client.get(feed).json()["changes"]
    pair = [change for change in page["changes"] if change["version"] == 2]
    assert pair in ([], whole[2:])
    assert (page["next_since"], page["pending"]) == (4, 0)


@EVERY_FORM
def test_forms_and_media_types_agree_on_the_selected_changes(client, feed, form):
    query = {"where": "note = 'c'", "form": form, "since": 2}
    as_json = client.get(feed, params=query).json()
    assert as_json["changes"] == client.get(feed, params={"form": form, "since": 2}).json()["changes"]
    as_ndjson = client.get(feed, params=query, headers={"Accept": NDJSON})
    assert [json.loads(line) for line in as_ndjson.text.splitlines()] == as_json["changes"]
    as_arrow = client.get(feed, params=query, headers={"Accept": ARROW})
    table = ipc.open_stream(io.BytesIO(as_arrow.content)).read_all()
    assert table.num_rows == len(as_json["changes"])
    assert [change for _, change in followed(client, feed, **query)] == as_json["changes"]


def test_page_may_be_empty_though_changes_follow(client, feed, small_scans):
    page = client.get(feed, params={"where": "note = 'c'", "limit": 1}).json()
    assert (page["changes"], page["next_since"] > 0, page["pending"]) == ([], True, 4 - page["next_since"])
    since, seen = 0, []
    while page["pending"]:
        page = client.get(feed, params={"where": "note = 'c'", "limit": 1, "since": since}).json()
        since = page["next_since"]
        seen += offsets(page)
    assert seen == [2, 3]


def test_selected_columns_may_omit_those_of_the_filter(client, feed):
    page = client.get(feed, params={"where": "note = 'b'", "columns": "id"}).json()
    assert [change["row"] for change in page["changes"]] == [{"id": 2}]


def test_invalid_filter_is_refused(client, feed):
    for path in (feed, f"{feed}/events"):
        members = problem(client.get(path, params={"where": "nope = 1"}), 400, "invalid-filter")
        assert members["position"] == 0
        members = problem(client.get(path, params={"partitions": "id=1"}), 400, "invalid-request")
        assert members["errors"][0]["pointer"] == "/partitions"


def test_partitions_select_changes_by_the_partition_of_their_row(client, service):
    fields = [{"name": "id", "type": "int64"}, {"name": "day", "type": "date"}]
    new = {
        "name": "visits", "schema": {"fields": fields}, "record_key": ["id"], "merge_mode": "commit_time",
        "partition_by": ["day"], "bucket": {"mode": "key_dynamic"},
    }  # fmt: skip
    path = client.post("/datasets", json=new).headers["location"]
    for day in ("2026-11-20", "2026-11-21"):
        client.post(f"{path}/writes", json=upsert({"id": 1, "day": day}, {"id": int(day[-2:]), "day": day}))
        service.work()
    feed = f"{path}/changes"
    first = client.get(feed, params={"partitions": "day=2026-11-20"}).json()["changes"]
    assert sorted((change["op"], change["row"]["id"]) for change in first if change["version"] == 1) == [
        ("+A", 1),
        ("+A", 20),
    ]
    # The row of key 1 went to the other partition: a pair of which one half is in either.
    for partitions in (["day=2026-11-20"], ["day=2026-11-21"], ["day=2026-11-20", "day=2026-11-21"]):
        second = client.get(feed, params={"partitions": partitions, "since": 2}).json()["changes"]
        moved = [change for change in second if change["row"]["id"] == 1]
        assert {change["row"]["day"] for change in moved} == {"2026-11-20", "2026-11-21"}
    problem(client.get(feed, params={"partitions": "hour=1"}), 400, "invalid-request")


class TestLongpoll:
    def test_long_poll_continues_past_unmatched_changes(self, client, feed, orders, service):
        answers = []
        parameters = {"where": "note = 'wanted'", "feed": "longpoll", "timeout": 20}
        with service.client(client.headers["authorization"].split()[1]) as second, service.working():
            waiting = threading.Thread(target=lambda: answers.append(second.get(feed, params=parameters)))
            waiting.start()
            for note in ("other", "wanted"):
                client.post(
                    f"{orders}/writes", json=upsert({"id": 3, "note": note}), headers={"Prefer": "wait=20"}
                )
            waiting.join(20)
        page = answers[0].json()
        assert (offsets(page), page["next_since"]) == ([5, 6], 7)

    def test_available_matches_beyond_the_first_page_return_immediately(self, client, feed, small_scans):
        began = time.monotonic()
        parameters = {"where": "note = 'c'", "feed": "longpoll", "timeout": 20, "limit": 1}
        assert offsets(client.get(feed, params=parameters).json()) == [2, 3]
        assert time.monotonic() - began < 5

    def test_timeout_returns_the_scanned_position(self, client, feed):
        parameters = {"where": "note = 'x'", "feed": "longpoll", "timeout": 1}
        page = client.get(feed, params=parameters).json()
        assert (page["changes"], page["next_since"], page["pending"]) == ([], 4, 0)


class TestEvents:
    def test_event_ids_count_the_whole_feed(self, client, feed):
        assert [at for at, _ in followed(client, feed, where="note = 'b' OR note = 'c'", since=2)] == [2, 4]
        received = followed(client, feed, where="note = 'b'")
        assert [change and change["row"]["note"] for _, change in received] in (["b"], ["b", None])
        assert received[-1][0] == 4

    def test_first_event_is_the_scanned_position(self, client, feed):
        assert followed(client, feed, where="note = 'x'") == [(4, None)]
        assert followed(client, feed, where="note = 'x'", last_event_id=4) == []

    def test_idle_stream_sends_positions(self, client, feed, orders, service, monkeypatch):
        monkeypatch.setattr(change_events, "HEARTBEAT_SECONDS", 0.2)
        with (
            service.working(),
            following(service, client, feed, where="note = 'wanted'", since=4, until=9) as stream,
        ):
            stream.until(lambda text: ": still here\n\n" in text)
            client.post(f"{orders}/writes", json=upsert({"id": 3, "note": "other"}))
            received = stream.until(lambda text: "id: 5\n\n" in text)
            assert blocks(received) == [(5, None)]
            client.post(f"{orders}/writes", json=upsert({"id": 4, "note": "wanted"}))
            received = stream.until(lambda text: "wanted" in text)
            assert [at for at, _ in blocks(received)] == [5, 6]

    def test_stream_ends_when_the_column_of_its_filter_is_dropped(self, client, orders, feed, service):
        with service.working(), following(service, client, feed, where="note = 'c'", since=4) as stream:
            version = client.get(orders).headers["etag"]
            change = {"changes": [{"kind": "drop", "name": "note"}]}
            changed = client.patch(orders, json=change, headers={"If-Match": version})
            assert changed.status_code == 200, changed.text
            client.post(f"{orders}/writes", json=upsert({"id": 9}))
            assert stream.ended.wait(10)
