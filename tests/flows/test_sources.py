"""Sources in a deployment: `kill -9` of the worker that runs a round loses no row and doubles none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.deployment import Deployment
from tests.support.left_out import left_out
from tests.support.shares import share
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack
DERIVED = "headwater derived"
LONG = left_out("FLOWS", "test-flows")

ROWS = 200


def _put(folder: Path, name: str, first: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = (f'{{"id": {number}, "note": "{name}"}}\n' for number in range(first, first + ROWS))
    part = folder / f".{name}"
    part.write_text("".join(rows))
    part.rename(folder / name)


def _register(table: Table, folder: Path, **members: Any) -> str:
    body = {
        "name": f"in_{folder.name}",
        "dataset": table.id,
        "kind": "files",
        "config": {"path": folder.as_uri(), "format": "ndjson"},
        "mode": "once",
        **members,
    }
    answer = table.client.post("/sources", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


def _source(table: Table, path: str) -> dict[str, Any]:
    found: dict[str, Any] = table.client.get(path).json()
    return found


@share(2)
@pytest.mark.parametrize(
    "committing",
    [pytest.param(False, id="before_its_commit", marks=LONG), pytest.param(True, id="within_its_commit")],
)
def test_round_with_a_killed_worker_is_committed_once(
    deployment: Deployment, new_table: Callable[..., Table], committing: bool
) -> None:
    # Without a key, a row that is written twice is there twice.
    table = new_table(record_key=[])
    folder = deployment.incoming / f"killed_{committing}".lower()
    _put(folder, "1.ndjson", 0)
    _put(folder, "2.ndjson", ROWS)
    with deployment.gates.at_head(table.id) as head:
        path = _register(table, folder)
        session = head.arrival()
        worker = deployment.worker_at(session.port)
        if not committing:
            deployment.processes[worker].kill()
    if committing:
        with deployment.gates.in_commit(table.id) as gate:
            _put(folder, "3.ndjson", 2 * ROWS)
            table.client.patch(path, json={"state": "active"})
            worker = deployment.arrival(gate)[1]
            deployment.processes[worker].kill()
    deployment.processes[worker].start(wait=False)
    expected = 3 if committing else 2
    until(
        lambda: (
            _source(table, path)["position"].get("files") == expected
            and _source(table, path)["state"] == "finished"
        ),
        "the source to read everything",
        seconds_max=120,
    )
    source = _source(table, path)
    assert source["last_error"] is None
    assert sorted(row["id"] for row in table.sound()) == list(range(expected * ROWS))
    rounds = table.client.get("/jobs", params={"dataset": table.id, "kind": "source_round"}).json()["items"]
    assert {job["state"] for job in rounds} == {"succeeded"}
    assert source["rounds"] == len(rounds)
    deployment.reap()
    assert not table.orphans()
    assert len(table.sound()) == expected * ROWS


@share(5)
def test_round_with_a_transform_and_a_killed_worker_is_committed_once(
    deployment: Deployment, new_table: Callable[..., Table]
) -> None:
    table = new_table(record_key=[])
    folder = deployment.incoming / "transformed"
    _put(folder, "1.ndjson", 0)
    _put(folder, "2.ndjson", ROWS)
    transform = {
        "sql": "SELECT id, concat(note, ':', CAST(id % 7 AS STRING)) AS note FROM source WHERE id % 2 = 0",
        "fields": [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}],
    }
    with deployment.gates.at_head(table.id) as head:
        path = _register(table, folder, transform=transform)
        # Its SQL runs in the process beside a worker, which ends with the worker.
        worker = deployment.worker_at(head.arrival(DERIVED).port)
        deployment.processes[worker].kill()
    deployment.processes[worker].start(wait=False)
    until(
        lambda: _source(table, path)["state"] == "finished", "the source to read everything", seconds_max=120
    )
    source = _source(table, path)
    assert (source["last_error"], source["position"]["files"], source["rounds"]) == (None, 2, 1)
    assert sorted(table.sound(), key=lambda row: row["id"]) == [
        {"id": number, "note": f"{1 + number // ROWS}.ndjson:{number % 7}"}
        for number in range(0, 2 * ROWS, 2)
    ]
    deployment.reap()
    assert not table.orphans()
