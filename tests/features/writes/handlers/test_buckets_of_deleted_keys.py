"""Buckets that open by size: a key keeps its bucket while it has a tombstone."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.http import upsert
from tests.support.service import Service

KINDS: dict[str, dict[str, Any]] = {
    "marks": {"table_type": "merge_on_read"},
    "rewrites": {"table_type": "copy_on_write"},
    "logs": {"table_type": "merge_on_read", "changelog": {"producer": "input"}},
    "across partitions": {"bucket": {"mode": "key_dynamic"}},
    "postponed": {"bucket": {"mode": "postpone"}},
}


class Table:
    """A dataset whose file group opens a bucket for every two keys. Writes are compacted where they are logs."""

    def __init__(self, service: Service, client: httpx2.Client, settings: dict[str, Any]) -> None:
        self.service, self.client = service, client
        fields = [{"name": name, "type": "int64"} for name in ("id", "at")]
        new = {"name": "t", "schema": {"fields": fields}, "record_key": ["id"], "ordering_field": "at"}
        bucket = {"mode": "dynamic", "count": 1, "target_rows": 2} | settings.get("bucket", {})
        answer = client.post("/datasets", json=new | settings | {"bucket": bucket}).raise_for_status()
        self.path = answer.headers["location"]
        self.compacts = bucket["mode"] == "postpone" or "changelog" in settings

    def write(self, operation: str, at: int, *numbers: int) -> None:
        body = upsert(*({"id": number, "at": at} for number in numbers)) | {"operation": operation}
        self._run("writes", body)
        if self.compacts:
            self._run("compactions", {})

    def _run(self, what: str, body: dict[str, Any]) -> None:
        job = self.client.post(f"{self.path}/{what}", json=body).raise_for_status().json()
        self.service.work()
        assert self.client.get(job["links"]["self"]).json()["state"] == "succeeded"

    def explained(self, number: int) -> dict[str, Any]:
        """The explanation of an upsert of the key."""
        [key] = self._explanation(number)["keys"]
        found: dict[str, Any] = key
        return found

    def bucket(self, number: int) -> int:
        """The bucket of the file that has the row of the key."""
        group = self._explanation(number)
        [bucket] = [
            file["bucket"] for file in group["files"] if file["path"] == group["keys"][0]["live"]["file"]
        ]
        return int(bucket)

    def _explanation(self, number: int) -> dict[str, Any]:
        body = upsert({"id": number, "at": 9})
        answer = self.client.post(f"{self.path}/explanations", json=body).raise_for_status().json()
        [group] = answer["file_groups"]
        found: dict[str, Any] = group
        return found

    def tombstones(self) -> list[tuple[int, int]]:
        """The bucket and the number of tombstones of each file."""
        items = self.client.get(f"{self.path}/files").json()["items"]
        return sorted((file["bucket"], file["live_rows"]) for file in items if file["kind"] == "tombstone")


@pytest.mark.parametrize("kind", KINDS)
def test_key_that_lives_again_keeps_its_bucket(service: Service, client: httpx2.Client, kind: str) -> None:
    table = Table(service, client, KINDS[kind])
    table.write("upsert", 1, 1, 2)
    table.write("upsert", 1, 3, 4)
    assert [table.bucket(number) for number in (1, 2, 3, 4)] == [0, 0, 1, 1]
    table.write("delete", 3, 1, 3)
    assert table.tombstones() == [(0, 1), (1, 1)]
    # Another delete replaces the tombstone of 3, and 5 gets no room that the deleted keys have left.
    table.write("delete", 5, 3)
    assert table.tombstones() == [(0, 1), (1, 1)]
    table.write("upsert", 1, 5)
    assert table.bucket(5) == 2
    # A row that is older stays away: the tombstone is found.
    table.write("upsert", 4, 3)
    assert table.explained(3)["live"] is None
    if not table.compacts:
        assert [table.explained(number)["bucket"] for number in (1, 3, 6)] == [0, 1, 2]
    table.write("upsert", 5, 3, 1, 6)
    assert [table.bucket(number) for number in (1, 2, 3, 4, 5, 6)] == [0, 0, 1, 1, 2, 2]
    assert table.tombstones() == []
    rows = client.get(f"{table.path}/rows").json()["rows"]
    assert sorted(row["id"] for row in rows) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("kind", KINDS)
def test_key_that_is_deleted_and_written_in_one_compaction_keeps_its_bucket(
    service: Service, client: httpx2.Client, kind: str
) -> None:
    table = Table(service, client, KINDS[kind])
    table.write("upsert", 1, 1, 2)
    table.write("upsert", 1, 3, 4)
    compacts, table.compacts = table.compacts, False
    table.write("delete", 3, 3)
    table.compacts = compacts
    table.write("upsert", 4, 3)
    assert table.bucket(3) == 1


def test_delete_of_a_key_without_a_row_reserves_a_bucket(service: Service, client: httpx2.Client) -> None:
    table = Table(service, client, KINDS["marks"])
    table.write("upsert", 1, 1, 2)
    table.write("delete", 3, 7, 8)
    assert table.tombstones() == [(1, 2)]
    table.write("upsert", 1, 3)
    table.write("upsert", 5, 7, 8)
    assert [table.bucket(number) for number in (1, 2, 7, 8, 3)] == [0, 0, 1, 1, 2]
