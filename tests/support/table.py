"""A dataset as its users see it over HTTP, and the check that what they see is sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx2

Row = dict[str, Any]
Key = tuple[Any, ...]
WRITTEN_FOLDERS = ("data", "changes")


class RunningService(Protocol):
    """What a table needs of the service that has it. `storage`: the folder with the files of all tables."""

    storage: Path

    def client(self) -> httpx2.Client: ...

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]: ...


@dataclass(frozen=True, kw_only=True)
class Table:
    """A dataset of a running service. `key`: its record key; empty for one that is append-only.

    `deployment`: the service. Only tests of one whose processes they stop use more than `RunningService` of it.
    """

    deployment: RunningService
    client: httpx2.Client
    id: str
    key: tuple[str, ...]

    @property
    def path(self) -> str:
        return f"/datasets/{self.id}"

    def send(
        self, operation: str, rows: Sequence[Row], headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """Sends rows as JSON."""
        body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}}
        return self.client.post(f"{self.path}/writes", json=body, headers=headers)

    def run_write(self, operation: str, rows: Sequence[Row] | None = None, **options: Any) -> Row:
        """The job of a write with options, or of one without rows, once it has succeeded."""
        body: Row = {"operation": operation, **options}
        if rows is not None:
            body["source"] = {"kind": "rows", "rows": list(rows)}
        answer = self.client.post(f"{self.path}/writes", json=body)
        assert answer.status_code in (200, 202), answer.text
        return self.succeeded(answer.json()["id"])

    def compact(self) -> Row:
        """The job of a compaction, once it has succeeded."""
        answer = self.client.post(f"{self.path}/compactions")
        assert answer.status_code == 202, answer.text
        return self.succeeded(answer.json()["id"])

    def submit(self, operation: str, rows: Sequence[Row]) -> str:
        """The id of the job that the write was accepted as."""
        answer = self.send(operation, rows)
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]

    def write(self, operation: str, rows: Sequence[Row]) -> Row:
        """The job of a write, once it has succeeded."""
        return self.succeeded(self.submit(operation, rows))

    def job(self, job_id: str) -> Row:
        return self.client.get(f"/jobs/{job_id}").json()

    def ended(self, job_id: str, *, minutes: int = 1) -> Row:
        """The job once it has ended."""
        for _ in range(2 * minutes):
            job = self.client.get(f"/jobs/{job_id}", params={"wait": 30}).json()
            if job["state"] not in ("queued", "running"):
                return job
        raise AssertionError(f"still {job['state']} after {minutes} min: {job}")

    def succeeded(self, job_id: str) -> Row:
        job = self.ended(job_id)
        assert job["state"] == "succeeded", job
        return job

    def failed(self, job_id: str, code: str) -> Row:
        """The problem that the job ended with."""
        job = self.ended(job_id)
        assert job["state"] == "failed", job
        assert job["error"]["type"] == f"/problems/{code}"
        return job["error"]

    @property
    def version(self) -> int:
        return self.client.get(self.path).json()["version"]

    def rows(self, version: int | None = None) -> list[Row]:
        """All rows at a version."""
        found: list[Row] = []
        query: Row = {"limit": 10_000} | ({} if version is None else {"version": version})
        while True:
            answer = self.client.get(f"{self.path}/rows", params=query)
            assert answer.status_code == 200, answer.text
            found += answer.json()["rows"]
            if answer.json()["next_page_token"] is None:
                return found
            query["page_token"] = answer.json()["next_page_token"]

    def changes(self) -> list[Row]:
        """The whole feed."""
        found: list[Row] = []
        while True:
            answer = self.client.get(f"{self.path}/changes", params={"since": len(found), "limit": 10_000})
            assert answer.status_code == 200, answer.text
            page = answer.json()
            found += page["changes"]
            assert page["next_since"] == len(found)
            if not page["pending"]:
                return found

    def sound(self) -> list[Row]:
        """The rows, after checking that table, feed, versions and files agree with one another."""
        changes, rows = self.changes(), self.rows()
        assert [change["offset"] for change in changes] == list(range(len(changes)))
        versions = [change["version"] for change in changes]
        assert versions == sorted(versions)
        query = "SELECT version FROM commits WHERE dataset_id = %s ORDER BY version"
        dense = list(range(1, self.version + 1))
        assert [version for (version,) in self.deployment.query(query, self.id)] == dense
        assert set(versions) <= set(dense)
        if self.key:
            assert by_key(rows, self.key) == fold(changes, self.key)
        else:
            heap = Counter(repr(change["row"]) for change in changes if change["op"] == "+A")
            heap.subtract(repr(change["row"]) for change in changes if change["op"] == "-R")
            assert Counter(map(repr, rows)) == +heap
        assert self.referenced() <= self.stored()
        return rows

    def referenced(self) -> set[str]:
        """Paths that commits refer to."""
        query = """SELECT path FROM files WHERE dataset_id = %s
            UNION ALL SELECT path FROM changelog_files WHERE dataset_id = %s"""
        return {path for (path,) in self.deployment.query(query, self.id, self.id)}

    def stored(self) -> set[str]:
        """Paths of the base and changelog files on storage."""
        root = self.deployment.storage
        return {
            str(file.relative_to(root))
            for folder in WRITTEN_FOLDERS
            for file in root.glob(f"*/{self.id}/{folder}/**/*.parquet")
        }

    def orphans(self) -> set[str]:
        """Paths on storage that no commit refers to."""
        return self.stored() - self.referenced()


def by_key(rows: Sequence[Row], key: Sequence[str]) -> dict[Key, Row]:
    """Rows by their keys, each of which must be there once."""
    found = {tuple(row[name] for name in key): row for row in rows}
    assert len(found) == len(rows), "a key is live twice"
    return found


def fold(changes: Sequence[Row], key: Sequence[str]) -> dict[Key, Row]:
    """The table that the changes make of an empty one; each must fit what is there."""
    table: dict[Key, Row] = {}
    corrected: Key | None = None
    for change in changes:
        row = change["row"]
        at = tuple(row[name] for name in key)
        assert (change["op"] == "+C") == (corrected is not None), f"not a pair: {change}"
        match change["op"]:
            case "+A":
                assert at not in table, f"appended twice: {change}"
                table[at] = row
            case "-R" | "-C":
                assert table.pop(at, None) == row, f"retracts what is not there: {change}"
                corrected = at if change["op"] == "-C" else None
            case "+C":
                assert at == corrected, f"corrects another row: {change}"
                table[at], corrected = row, None
    assert corrected is None
    return table
