"""Tables are kept in shape by themselves while they are written, and users see no more of it than their timeline."""

from __future__ import annotations

from collections.abc import Callable

import httpx2

from tests.support.table import Table
from tests.support.waiting import until

POLICY = {"logs": 4, "log_ratio": None, "deleted_ratio": None, "small_files": None}


def test_logs_are_compacted_automatically(client: httpx2.Client, new_table: Callable[..., Table]) -> None:
    table = new_table(
        bucket={"count": 1},
        table_type="merge_on_read",
        changelog={"producer": "input"},
        services={"compaction": POLICY},
    )
    expected = {}
    for number in range(20):
        rows = [{"id": key, "note": f"{number}"} for key in (number % 7, 100 + number)]
        table.write("upsert", rows)
        expected |= {row["id"]: row["note"] for row in rows}

    def compactions() -> list[dict[str, object]]:
        answer = client.get(f"{table.path}/timeline", params={"action": "compaction", "state": "completed"})
        return [instant for instant in answer.json()["items"] if instant["version"] is not None]

    def logs() -> int:
        files = client.get(f"{table.path}/files").json()["items"]
        return sum(file["kind"] == "log" for file in files)

    until(lambda: logs() < 4, "logs to be folded")
    found = compactions()
    assert found
    assert all(instant["actor"] is None for instant in found)
    assert {row["id"]: row["note"] for row in table.rows()} == expected
    changes = table.changes()
    assert [change["row"]["note"] for change in changes] == [
        f"{number}" for number in range(20) for _ in "ab"
    ]
    # Nothing else was committed, and nothing was lost.
    assert table.version == 20 + len(compactions())
    assert {client.get(f"/jobs/{instant['job_id']}").json()["actor"] for instant in found} == {None}
