"""Writes of operation changelog: rows that say themselves what they do."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from tests.support.http import problem

NDJSON = "application/x-ndjson"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
ORDERS = [{"id": 1, "note": "eins"}, {"id": 2, "note": "zwei"}]


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def arrow(**columns):
    table, sink = pa.table(columns), io.BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def changes_of(client, path, form="two_event"):
    return client.get(f"{path}/changes?form={form}", headers={"Accept": NDJSON}).content


ONE = {"id": 1, "note": "one"}
FEEDS = {
    "feed": (
        NDJSON,
        lines({"op": "-C", "row": ORDERS[0]}, {"op": "+C", "row": ONE}, {"op": "-R", "row": {"id": 2}}),
    ),
    "debezium": (
        NDJSON,
        lines(
            {"op": "u", "before": ORDERS[0], "after": ONE, "ts_ms": 7}, {"op": "d", "before": ORDERS[1]}, None
        ),
    ),
    "csv": (CSV, b"op,id,note\n+C,1,one\n-R,2,\n"),
    "arrow": (
        ARROW,
        arrow(op=pa.array([3, 1], pa.uint8()), id=pa.array([1, 2], pa.int64()), note=["one", None]),
    ),
}


def changelog(*changes):
    return {"operation": "changelog", "source": {"kind": "rows", "rows": list(changes)}}


@pytest.mark.parametrize("form", FEEDS)
def test_changes_are_applied_in_every_format(client, orders, service, form):
    media_type, body = FEEDS[form]
    wait = {"Prefer": "wait=20"}
    with service.working():
        first = changelog(*({"op": "+A", "row": row} for row in ORDERS))
        assert client.post(f"{orders}/writes", json=first, headers=wait).status_code == 200
        answer = client.post(
            f"{orders}/writes?operation=changelog", content=body, headers={**wait, "Content-Type": media_type}
        )
    assert answer.status_code == 200, answer.text
    assert answer.json()["operation"] == "changelog"
    emitted = [json.loads(line) for line in changes_of(client, orders).splitlines()][2:]
    assert sorted((change["op"], change["row"]["id"]) for change in emitted) == [
        ("+C", 1),
        ("-C", 1),
        ("-R", 2),
    ]
    assert client.get(f"{orders}/rows").json()["rows"] == [{"id": 1, "note": "one"}]


@pytest.mark.parametrize("form", ["two_event", "debezium"])
def test_feed_of_one_dataset_reproduces_it_in_another(client, orders, service, form):
    copy = client.get(orders).json()
    kept = {name: copy[name] for name in ("schema", "record_key")}
    registered = client.post("/datasets", json={"name": f"copy-{form}", **kept})
    assert registered.status_code == 201, registered.text
    other = registered.headers["location"]
    header = {"Prefer": "wait=20", "Content-Type": NDJSON}
    with service.working():
        for body in (lines(*ORDERS), lines({"id": 2, "note": None}, {"id": 3, "note": "drei"})):
            client.post(f"{orders}/writes?operation=upsert", content=body, headers=header)
        client.post(f"{orders}/writes?operation=delete", content=lines({"id": 1}), headers=header)
        feed = changes_of(client, orders, form)
        answer = client.post(f"{other}/writes?operation=changelog", content=feed, headers=header)
    assert answer.status_code == 200, answer.text
    rows = [client.get(f"{path}/rows").json()["rows"] for path in (orders, other)]
    assert sorted(rows[0], key=str) == sorted(rows[1], key=str)
    assert len(rows[0]) == 2


def test_error_of_a_change_names_its_position(client, orders):
    rows = [{"op": "+A", "row": ORDERS[0]}, {"op": "+A", "row": {"id": 2, "nota": "x"}}]
    answer = client.post(f"{orders}/writes", json=changelog(*rows))
    assert problem(answer, 422, "schema-mismatch")["errors"][0]["pointer"] == "/source/rows/1/row/nota"
