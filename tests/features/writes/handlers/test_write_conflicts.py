"""Writes that lose a race while they merge: they look again, and the history stays one after another."""

from __future__ import annotations

import pytest

from tests.features.writes.handlers.test_write_modes import APPENDS, BEFORE, KEYED, Written, row
from tests.support.races import overtaken

LATE = [row("a", 9, "late"), row("z", 9, "late")]


@pytest.fixture(params=["keyed", "appends"])
def table(client, service, request):
    found = Written(client, service, {"keyed": KEYED, "appends": APPENDS}[request.param])
    found.write("upsert" if found.keyed else "insert", BEFORE)
    yield found
    assert found.folded() == found.rows


@pytest.fixture
def overtake(service):
    """Runs the write that waits, while another one is accepted and committed."""

    def run(*, by, rows=LATE):
        return overtaken(service, lambda: by.send("upsert" if by.keyed else "insert", rows))

    return run


def ended(table, answer):
    return table.client.get(answer.headers["location"]).json()


@pytest.mark.parametrize(
    ("operation", "rows", "members", "left"),
    [
        ("overwrite", [row("c", 1)], {}, [row("c", 1)]),
        ("snapshot", [row("a", 1)], {}, [row("a", 1)]),
        ("delete", None, {"where": "id = 9 OR id = 1"}, [row("a", 2), row("b", 2)]),
        (
            "delete_partition",
            None,
            {"partitions": ["day=[bz]"]},
            [row("a", 1), row("a", 2), row("a", 9, "late")],
        ),
        (
            "overwrite",
            [row("z", 1)],
            {"overwrite": {"scope": "partitions"}},
            [*BEFORE, row("a", 9, "late"), row("z", 1)],
        ),
    ],
    ids=["overwrite", "snapshot", "delete by filter", "delete partition", "overwrite partitions"],
)
def test_rows_committed_meanwhile_are_replaced(table, overtake, operation, rows, members, left):
    answer = table.send(operation, rows, **members)
    overtake(by=table)
    job = ended(table, answer)
    assert (job["state"], job["committed_version"]) == ("succeeded", 3)
    assert table.rows == sorted(left, key=lambda each: (each["day"], each["id"]))


def test_rows_committed_outside_the_scope_do_not_conflict(table, overtake):
    answer = table.send("overwrite", [row("a", 7)], overwrite={"scope": "partitions"})
    overtake(by=table, rows=[row("b", 9, "late")])
    assert ended(table, answer)["rows"]["deleted"] == 2
    assert table.rows == [row("a", 7), row("b", 1), row("b", 2), row("b", 9, "late")]


@pytest.mark.parametrize("mode", ["ignore", "error_if_exists"])
def test_rows_committed_meanwhile_decide_the_save_mode(table, overtake, mode):
    table.write("overwrite", [])
    answer = table.send("insert", [row("a", 1)], mode=mode)
    overtake(by=table)
    job = ended(table, answer)
    assert job["state"] == ("succeeded" if mode == "ignore" else "failed")
    assert job["rows"]["unchanged"] == (1 if mode == "ignore" else 0)
    assert table.rows == LATE


def test_expected_version_passed_meanwhile_fails_the_write(table, overtake):
    answer = table.send("insert", [row("c", 1)], expected_version=1)
    overtake(by=table)
    job = ended(table, answer)
    assert (job["state"], job["error"]["type"]) == ("failed", "/problems/commit-conflict")
    assert table.rows == sorted([*BEFORE, *LATE], key=lambda each: (each["day"], each["id"]))


def test_transaction_that_conflicts_in_one_dataset_merges_there_again(client, service, overtake):
    tables = [Written(client, service, KEYED) for _ in range(2)]
    for table in tables:
        table.write("upsert", BEFORE)
    source = {"kind": "rows", "rows": [row("a", 9, "within")]}
    writes = [
        {"dataset": table.path.rsplit("/", 1)[-1], "operation": "upsert", "source": source}
        for table in tables
    ]
    answer = client.post("/transactions", json={"writes": writes})
    other = tables[1]
    overtake(by=other)
    done = client.get(answer.headers["location"]).json()
    assert done["state"] == "succeeded"
    assert sorted(job["committed_version"] for job in done["jobs"]) == [2, 3]
    for table in tables:
        assert row("a", 9, "within") in table.rows
        assert table.folded() == table.rows
    assert row("z", 9, "late") in other.rows
