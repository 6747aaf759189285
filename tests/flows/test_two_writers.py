"""Two workers write to one dataset at once."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pytest

from app.kernel.format.rows.record_key import bucket_numbers
from tests.support.deployment import Deployment
from tests.support.shares import share
from tests.support.table import Row, Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

BUCKETS = 8
ROUND = re.compile(r"-(\d+)-[0-9a-f]{8}\.parquet$")


@pytest.fixture
def table(new_table: Callable[..., Table]) -> Table:
    return new_table(bucket={"count": BUCKETS})


def ids_by_bucket() -> dict[int, list[int]]:
    ids = list(range(100))
    buckets = bucket_numbers(pa.table({"id": pa.array(ids, pa.int64())}), ("id",), BUCKETS)
    found: dict[int, list[int]] = {}
    for number, bucket in zip(ids, buckets.tolist(), strict=True):
        found.setdefault(bucket, []).append(number)
    return found


def write_side_by_side(deployment: Deployment, table: Table, rows: list[Row], others: list[Row]) -> list[Row]:
    """Two upserts that are both planned before either commits; their jobs."""
    for name in ("first", "second"):
        deployment.processes[name].wait_ready()
    with deployment.gates.at_head(table.id) as gate:
        with deployment.frozen("second"):
            jobs = [table.submit("upsert", rows)]
            gate.arrival()
        jobs.append(table.submit("upsert", others))
        until(lambda: len(gate.waiting()) == 2, "both workers to be at the head")
        assert {table.deployment.owner(job) for job in jobs} == {"first", "second"}
    return [table.succeeded(job) for job in jobs]


def rounds(paths: set[str]) -> set[int]:
    """The rounds of planning, counted from 0, that the files are of."""
    return {int(match[1]) for path in paths if (match := ROUND.search(path))}


@share(5)
def test_writers_of_different_buckets_do_not_conflict(deployment: Deployment, table: Table) -> None:
    first, second, *_ = ids_by_bucket().values()
    rows = [{"id": number, "note": "one"} for number in first]
    others = [{"id": number, "note": "two"} for number in second]
    jobs = write_side_by_side(deployment, table, rows, others)
    assert [job["committed_version"] for job in jobs] == [1, 2]
    assert sorted(table.sound(), key=lambda row: row["id"]) == sorted(
        rows + others, key=lambda row: row["id"]
    )
    assert rounds(table.referenced()) == {0}
    assert not table.orphans()


def test_writers_of_the_same_bucket_replan(deployment: Deployment, table: Table) -> None:
    shared, own, *_ = ids_by_bucket().values()
    rows = [{"id": number, "note": "one"} for number in shared]
    others = [{"id": shared[0], "note": "two"}, {"id": own[0], "note": "two"}]
    one, two = write_side_by_side(deployment, table, rows, others)
    assert (one["committed_version"], two["committed_version"]) == (1, 2)
    assert (two["rows"]["updated"], two["rows"]["inserted"]) == (1, 1)
    notes = {row["id"]: row["note"] for row in table.sound()}
    assert notes == dict.fromkeys(shared, "one") | {shared[0]: "two", own[0]: "two"}
    # The bucket that both had touched was done again, and the other one, which shares its changelog file.
    again = {path for path in table.referenced() if rounds({path}) == {1}}
    assert len(again) == 3
    assert len({path.rsplit("/", 1)[1].split("-")[0] for path in again}) == 2
    assert len(table.orphans()) == 3
    assert deployment.reap() >= 3
    assert not table.orphans()
    assert {row["id"]: row["note"] for row in table.sound()} == notes


def test_one_of_two_inserts_of_a_key_is_refused(deployment: Deployment, table: Table) -> None:
    for name in ("first", "second"):
        deployment.processes[name].wait_ready()
    with deployment.gates.at_head(table.id) as gate:
        with deployment.frozen("second"):
            winner = table.submit("insert", [{"id": 1, "note": "one"}])
            gate.arrival()
        loser = table.submit("insert", [{"id": 1, "note": "two"}])
        until(lambda: len(gate.waiting()) == 2, "both workers to be at the head")
    table.succeeded(winner)
    assert table.failed(loser, "duplicate-key")["keys"] == [{"id": 1}]
    assert table.sound() == [{"id": 1, "note": "one"}]
