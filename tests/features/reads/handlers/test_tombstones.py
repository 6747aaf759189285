"""Keys whose delete keeps older rows away: rows by key and explanations name it, and no list has it as a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from sqlalchemy import make_url

from app.access.tenants.values import Grant, KeyScope
from tests.support.http import problem, upsert
from tests.support.postgres import TestServer
from tests.support.service import Service

FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "at", "type": "timestamp"},
    {"name": "note", "type": "string"},
]
KINDS: dict[str, dict[str, Any]] = {
    "marks": {"table_type": "merge_on_read"},
    "rewrites": {"table_type": "copy_on_write"},
    "logs": {"table_type": "merge_on_read", "changelog": {"producer": "input"}},
}
FIRST, SECOND, THIRD = ("2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z", "2026-11-21T12:00:02Z")


class Deleted:
    """A dataset in which key 1 was written at FIRST and deleted at SECOND, in version 2. Key 2 has a row."""

    def __init__(self, service: Service, client: httpx2.Client, **settings: Any) -> None:
        self.service, self.client = service, client
        new = {"name": "readings", "schema": {"fields": FIELDS}, "record_key": ["id"], "ordering_field": "at"}
        self.path = client.post("/datasets", json=new | settings).raise_for_status().headers["location"]
        self.write(upsert(*({"id": number, "at": FIRST, "note": "a"} for number in (1, 2))))
        self.write(delete({"id": 1, "at": SECOND}))

    def write(self, body: dict[str, Any]) -> dict[str, Any]:
        job = self.client.post(f"{self.path}/writes", json=body).raise_for_status().json()
        self.service.work()
        ended: dict[str, Any] = self.client.get(job["links"]["self"]).json()
        assert ended["state"] == "succeeded", ended
        return ended

    def row(self, number: int, client: httpx2.Client | None = None, **query: Any) -> httpx2.Response:
        return (client or self.client).get(f"{self.path}/rows/{number}", params=query)

    def explained(self, *rows: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self.client.post(f"{self.path}/explanations", json=upsert(*rows)).raise_for_status().json()
        return [key for group in answer["file_groups"] for key in group["keys"]]


def delete(*rows: dict[str, Any], **options: Any) -> dict[str, Any]:
    return upsert(*rows) | {"operation": "delete"} | options


@pytest.fixture
def deleted(service: Service, client: httpx2.Client) -> Callable[..., Deleted]:
    return lambda **settings: Deleted(service, client, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_row_names_the_delete_that_keeps_older_rows_away(
    deleted: Callable[..., Deleted], kind: str
) -> None:
    table = deleted(**KINDS[kind])
    missing = problem(table.row(1), 404, "row-not-found")
    assert 'less than "2026-11-21T12:00:01Z" are kept away by a delete at version 2' in missing["detail"]
    tombstone = missing["tombstone"]
    assert (tombstone["ordering_value"], tombstone["version"]) == (SECOND, 2)
    assert table.row(1, version=1).json()["row"]["note"] == "a"
    # Another key was never there.
    never = problem(table.row(3), 404, "row-not-found")
    assert "tombstone" not in never
    [late, newer] = table.explained({"id": 1, "at": FIRST}, {"id": 1, "at": THIRD})
    assert (late["effect"], newer["effect"]) == ("late", "insert")
    assert late["tombstone"] == newer["tombstone"] == tombstone
    [found] = table.explained({"id": 2, "at": FIRST})
    assert (found["tombstone"], found["effect"]) == (None, "merge")
    answer = table.client.get(f"{table.path}/explanations", params={"key": '{"id": 1}'}).json()
    [key] = [key for group in answer["file_groups"] for key in group["keys"]]
    assert (key["effect"], key["live"], key["tombstone"]) == ("merge", None, tombstone)
    # A row that is not older lives, and ends the tombstone from its version on.
    table.write(upsert({"id": 1, "at": SECOND, "note": "b"}))
    assert table.row(1).json()["row"]["note"] == "b"
    assert [key["tombstone"] for key in table.explained({"id": 1, "at": FIRST})] == [None]
    assert problem(table.row(1, version=2), 404, "row-not-found")["tombstone"] == tombstone


@pytest.mark.parametrize("kind", KINDS)
def test_delete_without_tombstone_is_not_named(deleted: Callable[..., Deleted], kind: str) -> None:
    table = deleted(**KINDS[kind], deletes={"keep_seconds": 0})
    assert "tombstone" not in problem(table.row(1), 404, "row-not-found")
    [key] = table.explained({"id": 1, "at": FIRST})
    assert (key["tombstone"], key["effect"]) == (None, "insert")


def test_delete_with_the_option_leaves_no_tombstone(deleted: Callable[..., Deleted]) -> None:
    table = deleted()
    table.write(delete({"id": 2, "at": SECOND}, tombstone=False))
    assert "tombstone" not in problem(table.row(2), 404, "row-not-found")
    table.write(upsert({"id": 2, "at": FIRST, "note": "again"}))
    assert table.row(2).json()["row"]["note"] == "again"


def test_delete_of_a_row_without_ordering_value_keeps_no_row_away(deleted: Callable[..., Deleted]) -> None:
    table = deleted()
    table.write(upsert({"id": 3, "at": None, "note": "a"}))
    table.write(delete({"id": 3}))
    missing = problem(table.row(3), 404, "row-not-found")
    assert (missing["detail"], "tombstone" in missing) == ('no row has the key {"id":3} at version 4', False)
    [key] = table.explained({"id": 3, "at": None})
    assert (key["effect"], key["tombstone"]["ordering_value"]) == ("insert", None)


@pytest.mark.parametrize("kind", KINDS)
def test_earlier_version_is_judged_at_its_commit(
    deleted: Callable[..., Deleted], postgres: TestServer, kind: str
) -> None:
    """The delete of version 2 lasts an hour, and version 3 is committed later."""
    table = deleted(**KINDS[kind], deletes={"keep_seconds": 3600})
    dataset_id = table.client.get(table.path).json()["id"]
    database = str(make_url(table.service.settings.database_url).database)
    with postgres.administration(database) as connection:
        for what in ("commits SET committed_at = committed_at", "files SET written_at = written_at"):
            connection.execute(f"UPDATE {what} - interval '2 hours' WHERE dataset_id = %s", [dataset_id])
    for note in ("b", "c"):
        table.write(upsert({"id": 2, "at": THIRD, "note": note}))
    then = problem(table.row(1, version=2), 404, "row-not-found")
    assert (then["version"], then["tombstone"]["version"]) == (2, 2)
    for version in (3, 4):
        assert "tombstone" not in problem(table.row(1, version=version), 404, "row-not-found")
    [key] = table.explained({"id": 1, "at": FIRST})
    assert (key["effect"], key["tombstone"]) == ("insert", None)


@pytest.mark.parametrize("hidden", [{"where": "note <> 'b'"}, {"mask": ("at",)}], ids=["rows", "value"])
def test_delete_is_hidden_from_a_reader_of_a_part(
    deleted: Callable[..., Deleted], service: Service, client: httpx2.Client, hidden: dict[str, Any]
) -> None:
    """It may be of a row, or have a value, that the reader may not see."""
    table = deleted()
    grant = Grant(datasets="readings", scopes=(KeyScope.READ,), **hidden)
    tenant_id = client.get("/me").json()["tenant"]["id"]
    key = service.tenants.make_key(tenant_id, (KeyScope.READ,), grants=(grant,)).api_key
    with service.client(key) as reader:
        missing = problem(table.row(1, reader), 404, "row-not-found")
        assert "tombstone" not in missing
        assert "delete" not in missing["detail"]


def test_tombstones_are_files_that_no_number_counts_as_rows(deleted: Callable[..., Deleted]) -> None:
    table = deleted()
    files = table.client.get(f"{table.path}/files").json()["items"]
    tombstones = [file for file in files if file["kind"] == "tombstone"]
    assert [(file["rows"], file["live_rows"]) for file in tombstones] == [(1, 1)]
    statistics = table.client.get(f"{table.path}/statistics").json()
    assert (statistics["files"]["tombstones"], statistics["rows"]["live"]) == (1, 1)
    assert statistics["size_bytes"]["tombstones"] == tombstones[0]["size_bytes"]
    [partition] = table.client.get(f"{table.path}/partitions").json()["items"]
    assert (partition["rows"], partition["tombstone_files"]) == (1, 1)
    assert [row["id"] for row in table.client.get(f"{table.path}/rows").json()["rows"]] == [2]
