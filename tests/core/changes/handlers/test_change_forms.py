"""Reading the feed in other forms."""

import io
import json

import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from app.kernel.changelog.delivery_forms import ChangeForm
from tests.support.http import problem

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
EVERY_FORM = pytest.mark.parametrize("form", [form.value for form in ChangeForm])


@pytest.fixture
def feed(client, orders, feed, service):
    """The path of a feed of five changes: two appends, a correction, a retraction."""
    delete = {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 2}]}}
    client.post(f"{orders}/writes", json=delete)
    service.work()
    return feed


def last_three(client, feed, form):
    """The correction and the retraction, the times of their commits, and the offsets of what they take back."""
    page = client.get(feed, params={"since": 2, "form": form}).json()
    assert (page["next_since"], page["pending"], page["earliest"]) == (5, 0, 0)
    native = client.get(feed, params={"since": 2}).json()["changes"]
    assert client.get(feed, params={"since": 2, "form": "two_event"}).json()["changes"] == native
    first = client.get(feed, params={"limit": 2}).json()["changes"]
    appended_at = {appended["row"]["id"]: appended["offset"] for appended in first}
    assert all(put["corrects_offset"] is None for put in [*first, native[1]])
    assert [native[0]["corrects_offset"], native[2]["corrects_offset"]] == [appended_at[1], appended_at[2]]
    return page["changes"], [native[0]["system_time"], native[2]["system_time"]], appended_at


FROM, TO, GONE = {"id": 1, "note": "a"}, {"id": 1, "note": "c"}, {"id": 2, "note": "b"}


def change(offset, op, version, time, row, **more):
    return {
        "offset": offset,
        "op": op,
        "version": version,
        "corrects_offset": None,
        "system_time": time,
        "event_time": None,
        "row": row,
        **more,
    }


def test_single_event_form_emits_an_update_as_one_event(client, feed):
    changes, (second, third), appended_at = last_three(client, feed, "single_event")
    assert changes == [
        change(3, "U", 2, second, TO, before=FROM, corrects_offset=appended_at[1]),
        change(4, "-R", 3, third, GONE, before=None, corrects_offset=appended_at[2]),
    ]


def test_retract_form_emits_an_update_as_a_retraction_and_an_append(client, feed):
    changes, (second, third), appended_at = last_three(client, feed, "retract")
    assert changes == [
        change(2, "-R", 2, second, FROM, corrects_offset=appended_at[1]),
        change(3, "+A", 2, second, TO),
        change(4, "-R", 3, third, GONE, corrects_offset=appended_at[2]),
    ]


def test_upsert_form_emits_an_update_as_an_upsert(client, feed):
    changes, (second, third), appended_at = last_three(client, feed, "upsert")
    gone = change(4, "-R", 3, third, GONE, corrects_offset=appended_at[2])
    assert changes == [change(3, "+A", 2, second, TO), gone]


def test_debezium_form_emits_debezium_messages(client, feed):
    changes, _, _ = last_three(client, feed, "debezium")
    times = [each.pop("ts_ms") for each in changes]
    assert 1_700_000_000_000 < times[0] < times[1]
    assert changes == [
        {
            "op": "u",
            "before": FROM,
            "after": TO,
            "source": {"dataset": "orders", "version": 2, "offset": 3},
        },
        {
            "op": "d",
            "before": GONE,
            "after": None,
            "source": {"dataset": "orders", "version": 3, "offset": 4},
        },
    ]
    first = client.get(feed, params={"limit": 1, "form": "debezium"}).json()["changes"][0]
    assert (first["op"], first["before"], first["source"]["offset"]) == ("c", None, 0)


def test_delta_form_emits_change_types_and_commit_versions(client, feed):
    changes, (second, third), _ = last_three(client, feed, "delta")
    names = ["_change_type", "_commit_version", "_commit_timestamp"]
    assert [([each[name] for name in names], each["row"]) for each in changes] == [
        (["update_preimage", 2, second], FROM),
        (["update_postimage", 2, second], TO),
        (["delete", 3, third], GONE),
    ]
    assert all(set(each) == {"row", *names} for each in changes)


@EVERY_FORM
def test_media_types_agree_in_every_form(client, feed, form):
    as_json = client.get(feed, params={"form": form}).json()["changes"]
    as_ndjson = client.get(feed, params={"form": form}, headers={"Accept": NDJSON})
    assert [json.loads(line) for line in as_ndjson.text.splitlines()] == as_json
    as_arrow = client.get(feed, params={"form": form}, headers={"Accept": ARROW})
    table = ipc.open_stream(io.BytesIO(as_arrow.content)).read_all()
    images = table.column("after" if form == "debezium" else "note").to_pylist()
    notes = [image and image["note"] for image in images] if form == "debezium" else images
    member = "after" if form == "debezium" else "row"
    assert notes == [each[member] and each[member]["note"] for each in as_json]
    for answer in (as_ndjson, as_arrow):
        assert answer.headers["headwater-next-since"] == "5"


def test_single_event_arrow_has_row_and_before_columns(client, feed):
    answer = client.get(feed, params={"form": "single_event", "since": 2}, headers={"Accept": ARROW})
    table = ipc.open_stream(io.BytesIO(answer.content)).read_all()
    names = [
        "offset",
        "op",
        "system_time",
        "event_time",
        "version",
        "corrects_offset",
        "id",
        "note",
        "before",
    ]
    assert table.column_names == names
    assert set(table.column("corrects_offset").to_pylist()) == {0, 1}
    assert table.schema.field("op").type == pa.uint8()
    assert table.column("op").to_pylist() == [3, 1]
    assert table.column("before").to_pylist() == [FROM, None]


@EVERY_FORM
def test_pages_join_to_the_whole_feed(client, feed, form):
    whole = client.get(feed, params={"form": form}).json()["changes"]
    since, seen, pages = 0, [], 0
    while (page := client.get(feed, params={"since": since, "limit": 1, "form": form}).json())["changes"]:
        seen += page["changes"]
        since = page["next_since"]
        pages += 1
    assert (seen, since, pages) == (whole, 5, 4)


@EVERY_FORM
def test_form_applies_columns_since_and_until(client, feed, form):
    parameters = {"form": form, "columns": "note", "until": 4, "since": 2}
    page = client.get(feed, params=parameters).json()
    assert (page["next_since"], page["pending"]) == (4, 1)
    (*_, last) = page["changes"]
    assert last.get("row", last.get("after")) == {"note": "c"}


def test_unknown_form_is_refused(client, feed):
    members = problem(client.get(feed, params={"form": "avro"}), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == "/form"
