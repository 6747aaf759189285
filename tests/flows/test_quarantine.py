"""Bad records among good ones, through Spark: the good ones are in the table, the others in quarantine, each once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.deployment import INLINE_BYTES_MAX, Deployment
from tests.support.row_formats import NDJSON, PARQUET, parquet
from tests.support.table import Table

pytestmark = pytest.mark.stack

ROWS = 20_000
BAD_EACH = 97


def send(table: Table, content: bytes, media_type: str, operation: str) -> dict[str, Any]:
    answer = table.client.post(
        f"{table.path}/writes",
        params={"on_error": "quarantine", "operation": operation},
        content=content,
        headers={"Content-Type": media_type},
    )
    assert answer.status_code == 202, answer.text
    return table.succeeded(answer.json()["id"])


def quarantined(table: Table, job_id: str) -> list[dict[str, Any]]:
    query: dict[str, Any] = {"job": job_id, "page_size": 50}
    items: list[dict[str, Any]] = []
    while True:
        page = table.client.get(f"{table.path}/quarantine", params=query).json()
        items += page["items"]
        if page["next_page_token"] is None:
            return items
        query["page_token"] = page["next_page_token"]


def redrive(table: Table, body: dict[str, Any]) -> dict[str, Any]:
    answer = table.client.post(f"{table.path}/quarantine/redrives", json=body)
    assert answer.status_code == 202, answer.text
    return table.succeeded(answer.json()["id"])


def test_bad_records_of_a_large_body_are_repaired_and_redriven(table: Table) -> None:
    bad = range(0, ROWS, BAD_EACH)
    lines = [f'{{"id":{n},"note":"{n:050d}"}}' if n % BAD_EACH else f'{{"id":"{n}"}}' for n in range(ROWS)]
    content = "\n".join(lines).encode()
    assert len(content) > INLINE_BYTES_MAX
    job = send(table, content, NDJSON, "upsert")
    assert (job["rows"]["inserted"], job["rows"]["quarantined"]) == (ROWS - len(bad), len(bad))
    records = quarantined(table, job["id"])
    assert [record["position"] for record in records] == list(bad)
    assert [record["payload"] for record in records] == [f'{{"id":"{n}"}}' for n in bad]

    repaired = [
        {"id": record["id"], "payload": f'{{"id":{record["position"]},"note":"repaired"}}'}
        for record in records[:-2]
    ]
    again = redrive(table, {"records": repaired})
    assert (again["rows"]["inserted"], again["rows"]["quarantined"]) == (len(bad) - 2, 0)
    rest = redrive(table, {"job": job["id"]})
    assert (rest["rows"]["inserted"], rest["rows"]["quarantined"]) == (0, 2)
    assert {record["state"] for record in quarantined(table, job["id"])} == {"redriven"}
    notes = {row["id"]: row["note"] for row in table.sound()}
    assert sorted(notes) == [n for n in range(ROWS) if n not in bad[-2:]]
    assert {notes[n] for n in bad[:-2]} == {"repaired"}


def test_inserted_rows_with_live_keys_are_quarantined(deployment: Deployment, table: Table) -> None:
    table.write("insert", [{"id": n, "note": "first"} for n in (3, 500, 999)])
    ids = pa.array([None if n == 7 else n for n in range(1000)], pa.int64())
    rows = pa.table({"id": ids, "note": ["second"] * 1000})
    job = send(table, parquet(rows), PARQUET, "insert")
    assert (job["rows"]["inserted"], job["rows"]["quarantined"]) == (996, 4)
    records = {record["payload"]: record for record in quarantined(table, job["id"])}
    assert set(records) == {
        '{"id":null,"note":"second"}',
        *(f'{{"id":{n},"note":"second"}}' for n in (3, 500, 999)),
    }
    again = redrive(table, {"job": job["id"]})
    assert (again["operation"], again["rows"]["inserted"], again["rows"]["quarantined"]) == ("insert", 0, 4)
    notes = {row["id"]: row["note"] for row in table.sound()}
    assert sorted(notes) == [n for n in range(1000) if n != 7]
    assert [notes[n] for n in (3, 500, 999)] == ["first"] * 3
