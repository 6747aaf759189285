"""Rows of an upsert that delete their key by a marker."""

from __future__ import annotations

import io
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.http import problem
from tests.support.service import Service

STAFF: dict[str, Any] = {
    "record_key": ["id"],
    "delete_marker": "gone",
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "name", "type": "string", "nullable": False},
            {"name": "since", "type": "date", "nullable": False},
            {"name": "gone", "type": "boolean"},
        ]
    },
}
ANN, BOB = ({"id": number, "name": name, "since": "2026-01-01"} for number, name in ((1, "ann"), (2, "bob")))


def arrow() -> bytes:
    table, sink = pa.table({"id": pa.array([2], pa.int64()), "gone": [True]}), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def parquet() -> bytes:
    sink = io.BytesIO()
    columns = {"id": pa.array([2], pa.int64()), "gone": [True], "name": pa.nulls(1, pa.string())}
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


BODIES = {
    "application/x-ndjson": lambda: b'{"id": 2, "gone": true}\n',
    "text/csv": lambda: b"id,gone\n2,true\n",
    "application/vnd.apache.arrow.stream": arrow,
    "application/vnd.apache.parquet": parquet,
}


@pytest.mark.parametrize("media_type", BODIES)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_marked_row_deletes_by_its_key_alone(
    client: httpx2.Client, service: Service, media_type: str, table_type: str
) -> None:
    answer = client.post("/datasets", json={"name": "staff", "table_type": table_type, **STAFF})
    assert answer.status_code == 201, answer.text
    path = answer.headers["location"]
    rows = {"operation": "upsert", "source": {"kind": "rows", "rows": [ANN, BOB]}}
    assert client.post(f"{path}/writes", json=rows).status_code == 202
    service.work()
    query = f"{path}/writes?operation=upsert"
    answer = client.post(query, content=BODIES[media_type](), headers={"Content-Type": media_type})
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(answer.headers["location"]).json()
    assert (job["state"], job["rows"]["deleted"]) == ("succeeded", 1), job
    assert [row["name"] for row in client.get(f"{path}/rows").json()["rows"]] == ["ann"]
    marked = {"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 1, "gone": True}]}}
    problem(client.post(f"{path}/writes", json=marked), 422, "schema-mismatch")
    unmarked = {"operation": "upsert", "source": {"kind": "rows", "rows": [{"id": 1, "gone": False}]}}
    problem(client.post(f"{path}/writes", json=unmarked), 422, "schema-mismatch")
