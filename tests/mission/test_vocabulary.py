"""A dataset's vocabulary names what its feed adds to rows, in every format, as output and as input."""

from __future__ import annotations

import io
import json
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.exports import contents, exported
from tests.support.http import problem
from tests.support.waiting import until

_numbers = count(1)
VOCABULARY = {"offset": "seq", "op": "change kind", "system_time": "written", "version": "commit"}
FIELDS = [{"name": "id", "type": "int64", "nullable": False}, {"name": "note", "type": "string"}]
NAMES = ["seq", "change kind", "commit", "corrects_offset", "written", "event_time", "row"]
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture
def make(client):
    """Registers a dataset of the vocabulary."""

    def run(**changelog):
        body = {
            "name": f"t{next(_numbers)}",
            "record_key": ["id"],
            "schema": {"fields": FIELDS},
            "changelog": {"vocabulary": VOCABULARY, **changelog},
        }
        answer = client.post("/datasets", json=body)
        assert answer.status_code == 201, answer.text
        return answer.headers["location"]

    return run


@pytest.fixture
def written(client, service, make):
    path = make()
    for note in ("a", "b"):
        csv = f"id,note\n1,{note}\n"
        client.post(f"{path}/writes?operation=upsert", content=csv, headers={"Content-Type": "text/csv"})
        service.work()
    return path


def ndjson(text):
    return [json.loads(line) for line in text.splitlines()]


def test_feed_has_the_names_of_the_vocabulary_in_every_format(client, written):
    changes = client.get(f"{written}/changes").json()["changes"]
    assert [list(change) for change in changes] == [NAMES] * 3
    assert [(change["seq"], change["change kind"], change["commit"]) for change in changes] == [
        (0, "+A", 1),
        (1, "-C", 2),
        (2, "+C", 2),
    ]
    lines = client.get(f"{written}/changes", headers={"Accept": "application/x-ndjson"}).text
    assert ndjson(lines) == changes
    columns = client.get(f"{written}/changes", headers={"Accept": ARROW})
    table = pa.ipc.open_stream(columns.content).read_all()
    assert table.column_names == [
        "seq", "change kind", "written", "event_time", "commit", "corrects_offset", "id", "note",
    ]  # fmt: skip
    single = client.get(f"{written}/changes", params={"form": "single_event"}).json()["changes"]
    assert [list(change) for change in single] == [[*NAMES, "before"]] * 2
    from_table = client.get(f"{written}/changes", params={"since": "snapshot"}).json()["changes"]
    assert [list(change) for change in from_table] == [NAMES]
    with client.stream("GET", f"{written}/changes/events", params={"until": 1}) as events:
        data = [line for line in events.iter_lines() if line.startswith('data: {"seq')]
    assert [json.loads(line.removeprefix("data: ")) for line in data] == changes[:1]


def test_standard_names_are_returned_on_request(client, written):
    changes = client.get(f"{written}/changes", params={"vocabulary": "standard"}).json()["changes"]
    assert [(change["offset"], change["op"]) for change in changes] == [(0, "+A"), (1, "-C"), (2, "+C")]
    problem(client.get(f"{written}/changes", params={"vocabulary": "other"}), 400, "invalid-request")


def test_formats_of_other_systems_keep_their_names(client, written):
    debezium = client.get(f"{written}/changes", params={"form": "debezium"}).json()["changes"]
    assert [change["op"] for change in debezium] == ["c", "u"]
    delta = client.get(f"{written}/changes", params={"form": "delta"}).json()["changes"]
    assert "_commit_version" in delta[0]


def test_exports_have_the_names_of_the_vocabulary(client, service, written):
    run = exported(client, service, written, query="changes", format="ndjson")
    [content] = contents(client, run)
    assert ndjson(content) == client.get(f"{written}/changes").json()["changes"]


def test_changes_of_the_vocabulary_are_written_in_every_format(client, service, make, written):
    answers = {
        form: client.get(f"{written}/changes", headers={"Accept": form})
        for form in ("application/x-ndjson", ARROW)
    }
    flat = pa.ipc.open_stream(answers[ARROW].content).read_all().select(["change kind", "id", "note"])
    parquet = io.BytesIO()
    pq.write_table(flat, parquet)
    arrow = io.BytesIO()
    with pa.ipc.new_stream(arrow, flat.schema) as stream:
        stream.write_table(flat)
    bodies = {
        "application/x-ndjson": answers["application/x-ndjson"].content,
        "text/csv": b"change kind,id,note\n+A,1,a\n-C,1,a\n+C,1,b\n",
        ARROW: arrow.getvalue(),
        "application/vnd.apache.parquet": parquet.getvalue(),
    }
    standard = client.get(
        f"{written}/changes", headers={"Accept": "application/x-ndjson"}, params={"vocabulary": "standard"}
    )
    named = [("application/x-ndjson", standard.content), ("text/csv", b"op,id,note\n+A,1,b\n")]
    for media_type, content in [*bodies.items(), *named]:
        copy = make()
        sent = client.post(
            f"{copy}/writes?operation=changelog", content=content, headers={"Content-Type": media_type}
        )
        assert sent.status_code == 202, sent.text
        service.work()
        job = client.get(sent.headers["location"]).json()
        assert job["state"] == "succeeded", (media_type, job)
        assert client.get(f"{copy}/rows").json()["rows"] == [{"id": 1, "note": "b"}]


def test_fault_of_a_change_has_the_names_that_were_sent(client, make):
    path = make()
    rows = [{"change kind": "+X", "row": {"id": 1}}, {"change kind": "+A", "row": {"id": 1}, "more": 1}]
    body = {"operation": "changelog", "source": {"kind": "rows", "rows": rows}}
    refused = problem(client.post(f"{path}/writes", json=body), 422, "schema-mismatch")
    pointers = [error["pointer"] for error in refused["errors"]]
    assert [pointer.split("/rows/")[1] for pointer in pointers] == ["0/change kind", "1/more"]


def test_vocabulary_is_changed(client, service, written):
    found = client.get(written)
    change = {"changelog": {"vocabulary": {"op": "kind"}}}
    answer = client.patch(written, json=change, headers={"If-Match": found.headers["etag"]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["changelog"]["vocabulary"]["op"] == "kind"
    changes = client.get(f"{written}/changes").json()["changes"]
    assert [(change["offset"], change["kind"]) for change in changes] == [(0, "+A"), (1, "-C"), (2, "+C")]
    etag = answer.headers["etag"]
    for wrong in ({"op": "note"}, {"op": "row"}, {"op": "offset"}):
        body = {"changelog": {"vocabulary": wrong}}
        refused = problem(
            client.patch(written, json=body, headers={"If-Match": etag}), 422, "invalid-dataset"
        )
        assert refused["errors"][0]["pointer"] == "/changelog/vocabulary/op"
    problem(client.patch(written, json={"changelog": {}}, headers={"If-Match": etag}), 422, "invalid-dataset")


def test_started_message_keeps_its_names(client, service, receiver, written):
    dataset = written.rsplit("/", 1)[-1]
    receiver.answer(500)
    answer = client.post("/webhooks", json={"dataset": dataset, "url": receiver.url, "since": 0})
    assert answer.status_code == 201, answer.text
    service.work()
    etag = client.get(written).headers["etag"]
    changed = client.patch(written, json={"changelog": {"vocabulary": {}}}, headers={"If-Match": etag})
    assert changed.status_code == 200, changed.text
    until(lambda: service.work() or len(receiver.messages) > 1, "the second attempt")
    assert receiver.messages[1].body == receiver.messages[0].body
    assert list(receiver.changes[0]) == NAMES
