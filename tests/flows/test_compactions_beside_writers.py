"""Compactions beside writers, on real processes: every write is there once, and no writer fails or waits for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from secrets import token_hex
from typing import Any

import pytest

from tests.support.deployment import Deployment
from tests.support.shares import share
from tests.support.table import Row, Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

NewTable = Callable[..., Table]
SECONDS = 5.0
KINDS: dict[str, Row] = {
    # Writes mark rows of files that are too large to be rewritten.
    "marked": {"table_type": "merge_on_read", "target_bytes": 64 * 1024},
    "logged": {"table_type": "merge_on_read", "changelog": {"producer": "input"}},
    "appended": {"record_key": []},
}


@share(3)
def test_compactions_proceed_beside_writers_without_failing_them(new_table: NewTable) -> None:
    tables = {kind: new_table(**settings) for kind, settings in KINDS.items()}
    for table in tables.values():
        # So that the first compaction has something to fold.
        for at in range(3):
            table.write("insert", [{"id": -1 - at, "note": "before"}])
    stop = time.monotonic() + SECONDS
    written: dict[str, list[str]] = {kind: [] for kind in KINDS}
    compactions: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    numbers = count(1)

    def write(kind: str) -> None:
        table = tables[kind]
        operation = "insert" if kind == "appended" else "upsert"
        while time.monotonic() < stop:
            first = 10 * next(numbers)
            rows: list[dict[str, Any]] = [{"id": first + at, "note": kind} for at in range(10)]
            if kind == "marked":
                rows = [{**row, "note": token_hex(2_000)} for row in rows]
                # Every write takes a row of all the others' out.
                rows.append({"id": 0, "note": str(first)})
            written[kind].append(table.submit(operation, rows))
            time.sleep(0.05)

    def compact(kind: str) -> None:
        while time.monotonic() < stop:
            compactions[kind].append(tables[kind].compact())

    threads = [threading.Thread(target=write, args=(kind,)) for kind in KINDS for _ in range(2)]
    threads += [threading.Thread(target=compact, args=(kind,)) for kind in KINDS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for kind, table in tables.items():
        jobs = [table.succeeded(job) for job in written[kind]]
        assert all(job["attempts"] == 1 for job in jobs)
        rows = table.sound()
        assert len(rows) == 3 + 10 * len(jobs) + (kind == "marked"), kind
        results = [job["result"] for job in compactions[kind]]
        assert any(result["files_removed"] for result in results), (kind, results)


def test_compaction_with_a_killed_worker_happens_once(deployment: Deployment, new_table: NewTable) -> None:
    table = new_table(**KINDS["logged"])
    for first in (0, 50):
        table.write("upsert", [{"id": first + at, "note": str(first)} for at in range(50)])
    with deployment.gates.at_head(table.id) as gate:
        answer = table.client.post(f"{table.path}/compactions")
        worker = deployment.arrival(gate)[1]
        assert table.deployment.owner(answer.json()["id"]) == worker
        deployment.processes[worker].kill()
        deployment.processes[worker].start(wait=False)
        assert table.version == 2
    job = table.succeeded(answer.json()["id"])
    assert (job["committed_version"], job["attempts"], job["result"]["file_groups"]) == (3, 2, 2)
    assert len(table.sound()) == 100
    query = "SELECT DISTINCT kind FROM files WHERE dataset_id = %s AND removed_version IS NULL"
    assert deployment.query(query, table.id) == [("base",)]
    assert table.orphans()
    until(lambda: deployment.reap() >= 0 and not table.orphans(), "what the dead attempt left to go")
