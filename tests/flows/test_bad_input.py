"""Input that a worker cannot take: a problem that says what and where, and nothing half written."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.support.deployment import INLINE_BYTES_MAX
from tests.support.row_formats import ARROW, CSV, NDJSON, PARQUET, arrow_stream, parquet, zipped
from tests.support.shares import share
from tests.support.table import Table

pytestmark = pytest.mark.stack

GOOD = {"id": 1, "note": "good"}
LINES = 4000


def rows(**columns: pa.Array) -> pa.Table:
    ids = pa.array(range(LINES), pa.int64())
    return pa.table({"id": ids, "note": pa.array([f"{n:0100d}" for n in range(LINES)]), **columns})


def one_bad_line(media_type: str, bad: str) -> bytes:
    """Text that is too large for the API to read, with the bad line last but one."""
    good = [f'{{"id": {n}, "note": "{n:0100d}"}}' for n in range(LINES)]
    head: list[str] = []
    if media_type == CSV:
        good, head = [f"{n},{n:0100d}" for n in range(LINES)], ["id,note"]
    content = "\n".join([*head, *good[:-1], bad, good[-1], ""]).encode()
    assert len(content) > INLINE_BYTES_MAX
    return content


def random_order(content: bytes) -> bytes:
    """The middle of the bytes reversed: right at both ends, wrong in between."""
    third = len(content) // 3
    return content[:third] + content[third : 2 * third][::-1] + content[2 * third :]


BROKEN: dict[str, tuple[str, str, Callable[[], bytes]]] = {
    "truncated Parquet": (PARQUET, "malformed-body", lambda: parquet(rows())[:-20]),
    "Parquet without its head": (PARQUET, "malformed-body", lambda: b"x" * 4 + parquet(rows())[4:-1]),
    "truncated Arrow": (ARROW, "malformed-body", lambda: arrow_stream(rows())[:-LINES]),
    "no Arrow at all": (ARROW, "malformed-body", lambda: b"hello" * 100),
    "Arrow of another type": (
        ARROW,
        "schema-mismatch",
        lambda: arrow_stream(rows(id=pa.array([f"x{n}" for n in range(LINES)]))),
    ),
    "Parquet with an unknown column": (
        PARQUET,
        "schema-mismatch",
        lambda: parquet(rows(other=pa.array(range(LINES)))),
    ),
    "a null key in Parquet": (
        PARQUET,
        "schema-mismatch",
        lambda: parquet(rows(id=pa.array([*range(LINES - 1), None], pa.int64()))),
    ),
    "NDJSON that is no JSON": (NDJSON, "malformed-body", lambda: one_bad_line(NDJSON, '{"id": 7')),
    "NDJSON of another type": (NDJSON, "schema-mismatch", lambda: one_bad_line(NDJSON, '{"id": "seven"}')),
    "NDJSON that is no UTF-8": (
        NDJSON,
        "malformed-body",
        lambda: one_bad_line(NDJSON, '{"id": 7, "note": "?"}').replace(b"?", b"\xff"),
    ),
    "CSV that overflows": (CSV, "schema-mismatch", lambda: one_bad_line(CSV, f"{2**63},x")),
    "CSV with a cell too many": (CSV, "schema-mismatch", lambda: one_bad_line(CSV, "7,x,y")),
}


@pytest.fixture
def filled_table(table: Table) -> Table:
    """A table with a row."""
    table.write("insert", [GOOD])
    return table


def send(table: Table, content: bytes, media_type: str, **headers: str) -> Any:
    return table.client.post(
        f"{table.path}/writes", content=content, headers={"Content-Type": media_type, **headers}
    )


def untouched(table: Table) -> bool:
    """Whether nothing of the failed write is to be seen, and the next write goes through."""
    assert table.sound() == [GOOD]
    assert table.version == 1
    assert not table.orphans()
    return bool(table.write("upsert", [{"id": 2, "note": "next"}])["committed_version"] == 2)


@share(6)
@pytest.mark.parametrize(("media_type", "code", "content"), BROKEN.values(), ids=BROKEN)
def test_failed_job_reports_the_errors_of_its_input(
    filled_table: Table, media_type: str, code: str, content: Callable[[], bytes]
) -> None:
    answer = send(filled_table, content(), media_type)
    assert answer.status_code == 202, answer.text
    problem = filled_table.failed(answer.json()["id"], code)
    assert problem["status"] == {"malformed-body": 400, "schema-mismatch": 422}[code]
    if code == "schema-mismatch":
        assert all(error["pointer"].startswith("/") and error["detail"] for error in problem["errors"])
    assert untouched(filled_table)


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(one_bad_line(CSV, "7,seven"))[:-500],
        zipped(b""),
        b"no gzip",
        random_order(zipped(one_bad_line(CSV, "7,seven"))),
    ],
    ids=["truncated", "empty", "none", "damaged"],
)
def test_upload_of_bad_gzip_fails_its_job(filled_table: Table, content: bytes) -> None:
    headers = {"Content-Type": "application/octet-stream"}
    upload = filled_table.client.post(f"{filled_table.path}/uploads", content=content, headers=headers).json()
    source = {"kind": "upload", "upload_id": upload["id"], "format": "csv", "compression": "gzip"}
    answer = filled_table.client.post(
        f"{filled_table.path}/writes", json={"operation": "upsert", "source": source}
    )
    assert filled_table.failed(answer.json()["id"], "malformed-body")
    assert untouched(filled_table)


def test_wait_returns_the_problem_of_the_job(filled_table: Table) -> None:
    answer = send(filled_table, parquet(rows())[:-20], PARQUET, Prefer="wait=20")
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/malformed-body")
    assert answer.json()["job"]["state"] == "failed"
    assert untouched(filled_table)


def test_bad_write_does_not_fail_other_writes_of_its_group(filled_table: Table) -> None:
    with filled_table.deployment.gates.before_claim(filled_table.id):
        one = filled_table.submit("upsert", [{"id": 2, "note": "one"}])
        bad = send(filled_table, one_bad_line(CSV, "x,y"), CSV).json()["id"]
        two = filled_table.submit("upsert", [{"id": 3, "note": "two"}])
    assert [filled_table.succeeded(job)["committed_version"] for job in (one, two)] == [2, 2]
    assert filled_table.failed(bad, "schema-mismatch")["errors"]
    assert {row["id"] for row in filled_table.sound()} == {1, 2, 3}
