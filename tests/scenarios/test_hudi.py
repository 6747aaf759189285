"""What Apache Hudi's timeline, file layout and queries promise, each by its name, over HTTP."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.http import problem, upsert
from tests.support.service import Service

FIELDS = [{"name": "id", "type": "int64"}, {"name": "n", "type": "int64"}, {"name": "text", "type": "string"}]
KEYED: dict[str, Any] = {
    "record_key": ["id"],
    "table_type": "copy_on_write",
    "bucket": {"count": 1},
    "services": {"compaction": None},
}
LOGS = {**KEYED, "table_type": "merge_on_read", "changelog": {"producer": "input"}}
MARKED = {**KEYED, "table_type": "merge_on_read"}


class Table:
    """A dataset, whose jobs are done as soon as they are requested."""

    def __init__(self, client: httpx2.Client, service: Service, **settings: Any) -> None:
        answer = client.post("/datasets", json={"name": "t", "schema": {"fields": FIELDS}, **settings})
        assert answer.status_code == 201, answer.text
        self.client, self.service, self.path = client, service, answer.headers["location"]

    def run_job(
        self, what: str, body: dict[str, Any] | None = None, *, ends: str = "succeeded"
    ) -> dict[str, Any]:
        answer = self.client.post(f"{self.path}/{what}", json=body)
        assert answer.status_code == 202, answer.text
        self.service.work()
        job: dict[str, Any] = self.client.get(answer.json()["links"]["self"]).json()
        assert job["state"] == ends, job
        return job

    def upsert(self, *rows: dict[str, Any]) -> dict[str, Any]:
        return self.run_job("writes", upsert(*rows))

    def get(self, what: str, **which: Any) -> dict[str, Any]:
        answer = self.client.get(f"{self.path}/{what}", params=which)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def rows(self, **which: Any) -> dict[int, Any]:
        return {row["id"]: row["n"] for row in self.get("rows", **which)["rows"]}

    def kinds(self) -> list[str]:
        return sorted(file["kind"] for file in self.get("files")["items"])


def numbered(*numbers: int, text: str = "") -> list[dict[str, Any]]:
    return [{"id": number, "n": number, "text": text} for number in numbers]


def test_publish_is_atomic_and_failed_writes_roll_back(client: httpx2.Client, service: Service) -> None:
    table = Table(client, service, **KEYED)
    table.upsert(*numbered(1, 2))
    source = {"kind": "rows", "rows": numbered(2, 3)}
    failed = table.run_job("writes", {"operation": "insert", "source": source}, ends="failed")
    assert failed["error"]["type"] == "/problems/duplicate-key"
    assert table.rows() == {1: 1, 2: 2}
    table.upsert(*numbered(4))
    states = [(each["state"], each["version"]) for each in table.get("timeline")["items"]]
    assert states == [("completed", 2), ("rolled_back", None), ("completed", 1)]


@pytest.mark.parametrize("settings", [KEYED, LOGS, MARKED], ids=["copy on write", "logs", "vectors"])
def test_reader_is_isolated_from_writes_and_services(
    client: httpx2.Client, service: Service, settings: dict[str, Any]
) -> None:
    table = Table(client, service, **settings)
    table.upsert(*numbered(*range(6)))
    table.upsert({"id": 0, "n": 10, "text": ""})
    page = table.get("rows", limit=2)
    seen = page["rows"]
    for what, body in (
        ("writes", upsert(*({"id": number, "n": -1, "text": ""} for number in range(8)))),
        ("compactions", None),
        ("clusterings", {"columns": ["n"]}),
    ):
        table.run_job(what, body)
        page = table.get("rows", limit=2, page_token=page["next_page_token"])
        seen += page["rows"]
        if page["next_page_token"] is None:
            break
    assert {row["id"]: row["n"] for row in seen} == {0: 10, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5}
    assert page["version"] == 2


def test_restore_returns_to_a_savepoint(client: httpx2.Client, service: Service) -> None:
    table = Table(client, service, **LOGS)
    table.upsert(*numbered(1, 2))
    table.run_job("savepoints", {"name": "good"})
    table.upsert({"id": 2, "n": 20, "text": ""}, *numbered(3))
    table.upsert(*numbered(4))
    table.run_job("compactions")
    # A savepoint keeps its version whatever is cleaned …
    table.run_job("cleans", {"versions": 1})
    problem(client.get(f"{table.path}/rows", params={"version": 2}), 410, "version-expired")
    assert table.rows(tag="good") == {1: 1, 2: 2}
    # … and a restore takes the table back to it, as a version of its own.
    before = table.get("timeline")["items"][0]["version"]
    job = table.run_job("restores", {"savepoint": "good"})
    assert table.rows() == {1: 1, 2: 2}
    assert job["committed_version"] > (before or 0)


def test_small_files_receive_new_rows_and_files_end_at_their_size(
    client: httpx2.Client, service: Service
) -> None:
    table = Table(client, service, **KEYED, target_bytes=65_536)
    table.upsert(*numbered(1))
    table.upsert(*numbered(2))
    # The small file takes what comes.
    assert [file["rows"] for file in table.get("files")["items"]] == [2]
    chance = random.Random(1)
    wide = [{"id": number, "n": number, "text": chance.randbytes(100).hex()} for number in range(2_000)]
    for first in range(0, 2_000, 400):
        source = {"kind": "rows", "rows": wide[first : first + 400]}
        table.run_job("writes", {"operation": "upsert", "source": source})
    sizes = [file["size_bytes"] for file in table.get("files")["items"]]
    assert len(sizes) > 1
    assert max(sizes) < 3 * 65_536


def test_statistics_exclude_files_from_a_read(client: httpx2.Client, service: Service) -> None:
    table = Table(client, service, target_bytes=65_536, services={"compaction": None})
    for number in range(3):
        rows = numbered(*range(100 * number, 100 * number + 100))
        table.run_job("writes", {"operation": "insert", "source": {"kind": "rows", "rows": rows}})
    files = table.get("files", statistics="true")["items"]
    bounds = sorted(
        (file["statistics"]["n"]["minimum"], file["statistics"]["n"]["maximum"]) for file in files
    )
    assert bounds == [(0, 99), (100, 199), (200, 299)]
    stored = Path(service.settings.data_dir)
    for file in files:
        if file["statistics"]["n"]["minimum"] != 100:
            [path] = stored.rglob(Path(file["name"]).name)
            path.unlink()
    # What is not there cannot have been read.
    assert table.rows(where="n >= 120 AND n < 123") == {120: 120, 121: 121, 122: 122}


def test_compaction_merges_logs_beside_a_writer(
    client: httpx2.Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(client, service, **LOGS)
    for number in range(3):
        table.upsert(*numbered(number, 9))
    assert table.kinds() == ["log"] * 3
    engine, run = service.run_writes.engine, service.run_writes.engine.run

    def interrupted(*args: Any) -> Any:
        results = run(*args)
        monkeypatch.setattr(engine, "run", run)
        table.upsert({"id": 9, "n": 90, "text": ""})
        return results

    monkeypatch.setattr(engine, "run", interrupted)
    table.run_job("compactions")
    # The log that came meanwhile lies on top of the new base file.
    assert table.kinds() == ["base", "log"]
    assert table.rows() == {0: 0, 1: 1, 2: 2, 9: 90}
    assert table.rows(query_type="read_optimized") == {0: 0, 1: 1, 2: 2, 9: 9}
    actions = [each["action"] for each in table.get("timeline")["items"] if each["state"] == "completed"]
    assert sorted(actions) == ["commit"] * 4 + ["compaction"]


def test_incremental_query_returns_changes_and_refuses_invalid_bounds(
    client: httpx2.Client, service: Service
) -> None:
    table = Table(client, service, **KEYED)
    path = f"{table.path}/reads"
    empty = problem(client.post(path, json={"query": "incremental", "begin": 0}), 409, "no-commits")
    assert empty["detail"]
    table.upsert(*numbered(1, 2))
    table.upsert({"id": 2, "n": 20, "text": ""})
    missing = problem(client.post(path, json={"query": "incremental"}), 400, "invalid-request")
    assert missing["errors"][0]["pointer"] == "/begin"
    bad = problem(client.post(path, json={"query": "streaming"}), 400, "invalid-request")
    assert "incremental" in str(bad)
    job = table.run_job("reads", {"query": "incremental", "begin": 1, "end": 2})
    found = client.get(f"/jobs/{job['id']}/result").json()["rows"]
    assert [(row["id"], row["n"]) for row in found] == [(2, 20)]
