"""Every type through every form of input, and every kind of dataset."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.support.deployment import INLINE_BYTES_MAX
from tests.support.row_formats import (
    ARROW,
    CSV,
    FIELDS,
    FORMATS,
    NDJSON,
    PARQUET,
    arrow_stream,
    parquet,
    served_rows,
    written,
    zipped,
)
from tests.support.shares import share
from tests.support.table import Row, Table, by_key

pytestmark = pytest.mark.stack

OCTETS = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def typed(new_table: Callable[..., Table]) -> Table:
    """One column of each type."""
    return new_table(schema={"fields": FIELDS})


def post(table: Table, content: bytes, media_type: str, **headers: str) -> str:
    answer = table.client.post(
        f"{table.path}/writes",
        params={"operation": "upsert"},
        content=content,
        headers={"Content-Type": media_type, **headers},
    )
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def upload(table: Table, content: bytes, form: str, compression: str = "none") -> str:
    answer = table.client.post(f"{table.path}/uploads", content=content, headers=OCTETS)
    assert answer.status_code == 201, answer.text
    source = {"kind": "upload", "upload_id": answer.json()["id"], "format": form, "compression": compression}
    answer = table.client.post(f"{table.path}/writes", json={"operation": "upsert", "source": source})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def contains_all_rows(table: Table) -> bool:
    return by_key(table.sound(), table.key) == by_key(served_rows(), table.key)


def test_json_rows_of_every_type_are_written(typed: Table) -> None:
    typed.write("upsert", served_rows())
    assert contains_all_rows(typed)


@share(2)
@pytest.mark.parametrize("media_type", FORMATS)
def test_raw_bodies_of_every_format_are_written(typed: Table, media_type: str) -> None:
    """Raw, gzipped and uploaded say the same: the second and the third change nothing."""
    content = written(media_type)
    jobs = [
        typed.succeeded(post(typed, content, media_type)),
        typed.succeeded(post(typed, zipped(content), media_type, **{"Content-Encoding": "gzip"})),
        typed.succeeded(upload(typed, content, FORMATS[media_type])),
        typed.succeeded(upload(typed, zipped(content), FORMATS[media_type], "gzip")),
    ]
    assert [job["rows"]["inserted"] for job in jobs] == [3, 0, 0, 0]
    assert [job["rows"]["unchanged"] for job in jobs] == [0, 3, 3, 3]
    assert {job["committed_version"] for job in jobs} == {1}
    assert contains_all_rows(typed)


@pytest.mark.parametrize("media_type", [NDJSON, CSV])
def test_large_text_is_decoded_by_the_worker(table: Table, media_type: str) -> None:
    rows = [{"id": number, "note": f"{number:0100d}"} for number in range(2000)]
    if media_type == NDJSON:
        lines = [f'{{"id": {row["id"]}, "note": "{row["note"]}"}}\n' for row in rows]
    else:
        lines = ["id,note\n", *(f"{row['id']},{row['note']}\n" for row in rows)]
    content = "".join(lines).encode()
    assert len(content) > INLINE_BYTES_MAX
    assert table.succeeded(post(table, content, media_type))["rows"]["inserted"] == 2000
    assert by_key(table.sound(), table.key) == by_key(rows, table.key)


PARTITIONED: Row = {
    "schema": {
        "fields": [
            {"name": "day", "type": "date"},
            {"name": "carrier", "type": "string"},
            {"name": "flight", "type": "int32"},
            {"name": "seen", "type": "int64"},
            {"name": "note", "type": "string"},
        ]
    },
    "record_key": ["day", "carrier", "flight"],
    "partition_by": ["day", "carrier"],
    "ordering_field": "seen",
}


def flight(day: int, carrier: str, number: int, seen: int, note: str) -> Row:
    return {"day": f"2024-01-{day:02d}", "carrier": carrier, "flight": number, "seen": seen, "note": note}


def test_partitioned_dataset_with_a_key_of_several_fields_is_upserted(
    new_table: Callable[..., Table],
) -> None:
    table = new_table(**PARTITIONED)
    odd = ["UA", "", "a/b=c %2F..", "ü"]
    rows = [flight(day, carrier, n, 1, "first") for day in (1, 2) for carrier in odd for n in range(5)]
    assert table.write("insert", rows)["rows"]["inserted"] == 40
    late, newer = flight(1, "", 0, 0, "late"), flight(2, "a/b=c %2F..", 4, 2, "newer")
    counts = table.write("upsert", [late, newer])["rows"]
    assert (counts["late"], counts["updated"]) == (1, 1)
    gone = [{name: row[name] for name in table.key} for row in rows if row["carrier"] == "ü"]
    assert table.write("delete", gone)["rows"]["deleted"] == 10
    expected = [row for row in rows if row["carrier"] != "ü"]
    assert by_key(table.sound(), table.key) == by_key(expected, table.key) | by_key([newer], table.key)
    assert by_key(table.rows(version=1), table.key) == by_key(rows, table.key)


def test_keyless_dataset_appends_and_refuses_upserts(new_table: Callable[..., Table]) -> None:
    table = new_table(record_key=[])
    rows = [{"id": 1, "note": "twice"}, {"id": 1, "note": "twice"}, {"id": None, "note": None}]
    table.write("insert", rows)
    table.write("bulk_insert", rows)
    assert len(table.sound()) == 6
    assert len(table.rows(version=1)) == 3
    refused = table.send("upsert", rows)
    assert (refused.status_code, refused.json()["type"]) == (400, "/problems/invalid-request")


def test_deletes_may_empty_buckets_and_the_table(table: Table) -> None:
    rows = [{"id": number, "note": ""} for number in range(20)]
    table.write("insert", rows)
    table.write("delete", [{"id": number} for number in range(30)])
    assert table.sound() == []
    live = "SELECT count(*) FROM files WHERE dataset_id = %s AND removed_version IS NULL"
    assert table.deployment.query(live, table.id) == [(0,)]
    # A delete leaves nothing that a new row of the key could match.
    table.write("insert", rows[:1])
    assert table.sound() == rows[:1]
    assert len(table.rows(version=1)) == 20


@pytest.mark.parametrize(("media_type", "write"), [(ARROW, arrow_stream), (PARQUET, parquet)])
def test_write_without_rows_changes_nothing(
    table: Table, media_type: str, write: Callable[[pa.Table], bytes]
) -> None:
    table.write("insert", [{"id": 1, "note": "x"}])
    empty = pa.table({"id": pa.array([], pa.int64()), "note": pa.array([], pa.string())})
    jobs = [table.write("upsert", []), table.succeeded(post(table, write(empty), media_type))]
    assert {job["committed_version"] for job in jobs} == {1}
    assert table.sound() == [{"id": 1, "note": "x"}]
