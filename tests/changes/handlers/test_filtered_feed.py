"""The feed with a filter, over HTTP: pages, long polls and streams."""

import io
import json
import threading
import time

import pyarrow.ipc as ipc
import pytest

from app.changelog import changelog_scan
from app.changelog.forms import ChangeForm
from app.changes.handlers import events as change_events
from app.changes.service import read_changes
from tests.changes.handlers.test_change_events import blocks, followed, following
from tests.support.http import problem, upsert

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
EVERY_FORM = pytest.mark.parametrize("form", [form.value for form in ChangeForm])


@pytest.fixture
def little_looks(monkeypatch):
    """Every page looks at one change or pair."""
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
def test_a_pair_is_selected_whole_when_either_half_matches(client, feed, where, expected):
    page = client.get(feed, params={"where": where}).json()
    assert {change["row"]["note"] for change in page["changes"]} == expected
    whole = client.get(feed).json()["changes"]
    pair = [change for change in page["changes"] if change["version"] == 2]
    assert pair in ([], whole[2:])
    assert (page["next_since"], page["pending"]) == (4, 0)


@EVERY_FORM
def test_every_form_and_media_type_tells_what_is_selected(client, feed, form):
    asked = {"where": "note = 'c'", "form": form, "since": 2}
    as_json = client.get(feed, params=asked).json()
    assert as_json["changes"] == client.get(feed, params={"form": form, "since": 2}).json()["changes"]
    as_ndjson = client.get(feed, params=asked, headers={"Accept": NDJSON})
    assert [json.loads(line) for line in as_ndjson.text.splitlines()] == as_json["changes"]
    as_arrow = client.get(feed, params=asked, headers={"Accept": ARROW})
    table = ipc.open_stream(io.BytesIO(as_arrow.content)).read_all()
    assert table.num_rows == len(as_json["changes"])
    assert [change for _, change in followed(client, feed, **asked)] == as_json["changes"]


def test_a_page_may_be_empty_though_changes_follow(client, feed, little_looks):
    page = client.get(feed, params={"where": "note = 'c'", "limit": 1}).json()
    assert (page["changes"], page["next_since"] > 0, page["pending"]) == ([], True, 4 - page["next_since"])
    since, seen = 0, []
    while page["pending"]:
        page = client.get(feed, params={"where": "note = 'c'", "limit": 1, "since": since}).json()
        since = page["next_since"]
        seen += offsets(page)
    assert seen == [2, 3]


def test_columns_need_not_hold_what_the_filter_asks_for(client, feed):
    page = client.get(feed, params={"where": "note = 'b'", "columns": "id"}).json()
    assert [change["row"] for change in page["changes"]] == [{"id": 2}]


def test_what_is_wrong_with_a_filter_is_said(client, feed):
    for path in (feed, f"{feed}/events"):
        members = problem(client.get(path, params={"where": "nope = 1"}), 400, "invalid-filter")
        assert members["position"] == 0
        members = problem(client.get(path, params={"partitions": "id=1"}), 400, "invalid-request")
        assert members["errors"][0]["pointer"] == "/partitions"


def test_partitions_are_those_of_the_row(client, service):
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
    def test_it_goes_on_past_what_is_not_asked_for(self, client, feed, orders, service):
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

    def test_more_that_is_there_is_looked_at_at_once(self, client, feed, little_looks):
        began = time.monotonic()
        parameters = {"where": "note = 'c'", "feed": "longpoll", "timeout": 20, "limit": 1}
        assert offsets(client.get(feed, params=parameters).json()) == [2, 3]
        assert time.monotonic() - began < 5

    def test_one_that_times_out_tells_how_far_it_looked(self, client, feed):
        parameters = {"where": "note = 'x'", "feed": "longpoll", "timeout": 1}
        page = client.get(feed, params=parameters).json()
        assert (page["changes"], page["next_since"], page["pending"]) == ([], 4, 0)


class TestEvents:
    def test_positions_count_the_whole_feed(self, client, feed):
        assert [at for at, _ in followed(client, feed, where="note = 'b' OR note = 'c'", since=2)] == [2, 4]
        told = followed(client, feed, where="note = 'b'")
        assert [change and change["row"]["note"] for _, change in told] in (["b"], ["b", None])
        assert told[-1][0] == 4

    def test_a_reader_is_told_how_far_was_looked_before_the_first_event(self, client, feed):
        assert followed(client, feed, where="note = 'x'") == [(4, None)]
        assert followed(client, feed, where="note = 'x'", last_event_id=4) == []

    def test_silence_is_filled_with_positions(self, client, feed, orders, service, monkeypatch):
        monkeypatch.setattr(change_events, "HEARTBEAT_SECONDS", 0.2)
        with (
            service.working(),
            following(service, client, feed, where="note = 'wanted'", since=4, until=9) as stream,
        ):
            stream.until(lambda text: ": still here\n\n" in text)
            client.post(f"{orders}/writes", json=upsert({"id": 3, "note": "other"}))
            told = stream.until(lambda text: "id: 5\n\n" in text)
            assert blocks(told) == [(5, None)]
            client.post(f"{orders}/writes", json=upsert({"id": 4, "note": "wanted"}))
            told = stream.until(lambda text: "wanted" in text)
            assert [at for at, _ in blocks(told)] == [5, 6]

    def test_a_stream_whose_filter_lost_its_column_ends(self, client, orders, feed, service):
        with service.working(), following(service, client, feed, where="note = 'c'", since=4) as stream:
            version = client.get(orders).headers["etag"]
            change = {"changes": [{"kind": "drop", "name": "note"}]}
            changed = client.patch(orders, json=change, headers={"If-Match": version})
            assert changed.status_code == 200, changed.text
            client.post(f"{orders}/writes", json=upsert({"id": 9}))
            assert stream.ended.wait(10)
