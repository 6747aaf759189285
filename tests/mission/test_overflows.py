"""With on_error=quarantine, a sum that overflows quarantines the rows of its key only, for every way to store rows."""

from __future__ import annotations

from itertools import count

import pytest

_numbers = count(1)
SUMS = {
    "record_key": ["key"],
    "merge_mode": "aggregate",
    "aggregates": {"total": "sum"},
    "bucket": {"count": 2},
    "schema": {
        "fields": [
            {"name": "key", "type": "string", "nullable": False},
            {"name": "total", "type": "int8"},
            {"name": "day", "type": "string"},
        ]
    },
}
KINDS = {
    "copy_on_write": {"table_type": "copy_on_write"},
    "merge_on_read": {"table_type": "merge_on_read"},
    "input": {"table_type": "copy_on_write", "changelog": {"producer": "input"}},
}


def sums(key: str, *totals: int) -> list[dict[str, object]]:
    return [{"key": key, "total": total, "day": "a"} for total in totals]


@pytest.fixture(params=KINDS)
def table(client, service, request):
    answer = client.post("/datasets", json={"name": f"t{next(_numbers)}", **SUMS, **KINDS[request.param]})
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


@pytest.fixture
def write(client, service, table):
    def run(rows, **members):
        body = {"operation": "upsert", "source": {"kind": "rows", "rows": rows}, **members}
        answer = client.post(f"{table}/writes", json=body)
        assert answer.status_code == 202, answer.text
        service.work()
        return client.get(answer.headers["location"]).json()

    return run


@pytest.fixture
def totals(client, table):
    return lambda: {row["key"]: row["total"] for row in client.get(f"{table}/rows").json()["rows"]}


def test_overflowing_sum_quarantines_the_rows_of_its_key_only(client, service, table, write, totals):
    write([*sums("a", 100), *sums("b", 1)])
    # a overflows with the table, c within the write.
    rows = [*sums("a", 20, 30), *sums("b", 2, 3), *sums("c", 100, 100), *sums("d", 4)]
    assert write(rows)["error"]["type"] == "/problems/aggregate-overflow"
    assert totals() == {"a": 100, "b": 1}
    job = write(rows, on_error="quarantine")
    assert job["state"] == "succeeded", job
    assert (job["rows"]["quarantined"], job["rows"]["inserted"], job["rows"]["updated"]) == (4, 1, 1)
    assert totals() == {"a": 100, "b": 6, "d": 4}
    kept = client.get(f"{table}/quarantine", params={"job": job["id"]}).json()["items"]
    assert sorted(record["position"] for record in kept) == [0, 1, 4, 5]
    assert {error["pointer"] for record in kept for error in record["errors"]} == {"/total"}
    # Once the table has room, the records are written again.
    write([*sums("a", -50)])
    again = client.post(f"{table}/quarantine/redrives", json={"job": job["id"]})
    assert again.status_code == 202, again.text
    service.work()
    assert totals() == {"a": 100, "b": 6, "d": 4}


def test_feed_has_no_row_of_a_key_that_overflows(client, table, write):
    write(sums("a", 100))
    write([*sums("a", 100), *sums("b", 1)], on_error="quarantine")
    changes = client.get(f"{table}/changes", params={"form": "retract"}).json()["changes"]
    assert [(change["row"]["key"], change["row"]["total"]) for change in changes] == [("a", 100), ("b", 1)]


def test_writes_of_one_commit_quarantine_their_own_rows(client, service, table, totals):
    def send(total, **members):
        body = {"operation": "upsert", "source": {"kind": "rows", "rows": sums("a", total)}, **members}
        return client.post(f"{table}/writes", json=body).headers["location"]

    accepted = [
        send(100),
        send(100, on_error="quarantine"),
        send(20),
        send(100),
        send(5, on_error="quarantine"),
    ]
    service.work()
    jobs = [client.get(each).json() for each in accepted]
    assert [job["state"] for job in jobs] == ["succeeded", "succeeded", "succeeded", "failed", "succeeded"]
    assert [job["rows"]["quarantined"] for job in jobs] == [0, 1, 0, 0, 0]
    assert totals() == {"a": 125}
