"""Clusterings over HTTP: what they leave as it is, what they yield to, and by what nothing can be ordered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import pytest

from app.kernel.commit.merge_bundle import MergeBundle
from app.kernel.format.engine_task import EngineTask, Result, Work
from tests.support.http import problem, upsert
from tests.support.service import Service, TasksInProcess

FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "n", "type": "int32"},
    {"name": "tags", "type": "list<string>"},
]
KEYED = {
    "name": "keyed",
    "schema": {"fields": FIELDS},
    "record_key": ["id"],
    "bucket": {"count": 1},
    "services": {"clustering": {"columns": ["n"], "order": "z_order"}},
}
PLAIN = {"name": "plain", "schema": {"fields": FIELDS}}


def insert(*numbers: int) -> dict[str, Any]:
    rows = [{"id": number, "n": -number % 10} for number in numbers]
    return {"operation": "insert", "source": {"kind": "rows", "rows": rows}}


def written(client: httpx2.Client, service: Service, path: str, *bodies: dict[str, Any]) -> None:
    for body in bodies:
        assert client.post(f"{path}/writes", json=body).status_code == 202
        service.work()


def clustered(client: httpx2.Client, service: Service, path: str, **body: Any) -> dict[str, Any]:
    """The job of a clustering that has run."""
    answer = client.post(f"{path}/clusterings", json=body) if body else client.post(f"{path}/clusterings")
    assert answer.status_code == 202, answer.text
    assert answer.json()["kind"] == "clustering"
    service.work()
    ended: dict[str, Any] = client.get(answer.json()["links"]["self"]).json()
    assert ended["state"] == "succeeded", ended
    return ended


def seen(client: httpx2.Client, path: str) -> tuple[Any, Any]:
    """Rows with what they know of their past, and the feed."""
    rows = client.get(f"{path}/rows", params={"meta": "true"}).json()["rows"]
    bare = [{name: value for name, value in row.items() if name != "_hw_file_name"} for row in rows]
    return sorted(bare, key=lambda row: row["id"]), client.get(f"{path}/changes").json()["changes"]


@pytest.fixture
def plain(client: httpx2.Client, service: Service) -> str:
    """The path of a table without a key after three appends."""
    path: str = client.post("/datasets", json=PLAIN).headers["location"]
    written(client, service, path, insert(1, 2, 3), insert(4, 5), insert(6, 7, 8))
    return path


def test_clustering_orders_rows_and_changes_nothing_else(
    client: httpx2.Client, service: Service, plain: str
) -> None:
    before = seen(client, plain)
    job = clustered(client, service, plain, columns=["n"])
    assert job["committed_version"] == 4
    result = job["result"]
    assert (result["file_groups"], result["files_removed"], result["files_added"]) == (1, 3, 1)
    assert seen(client, plain) == before
    rows = client.get(f"{plain}/rows").json()["rows"]
    assert [row["n"] for row in rows] == list(range(2, 10))
    for version, orders in ((3, [None] * 3), (4, ["linear"])):
        files = client.get(f"{plain}/files", params={"version": version}).json()["items"]
        assert [file["clustered"] for file in files] == orders
    latest = client.get(f"{plain}/timeline").json()["items"][0]
    assert (latest["action"], latest["state"], latest["version"]) == ("clustering", "completed", 4)
    again = clustered(client, service, plain, columns=["n"])
    assert (again["committed_version"], again["result"]["file_groups"]) == (4, 0)
    assert client.get(plain).json()["version"] == 4
    earlier = client.get(f"{plain}/rows", params={"version": 2}).json()["rows"]
    assert sorted(row["id"] for row in earlier) == [1, 2, 3, 4, 5]


def test_clustering_policy_supplies_omitted_members(client: httpx2.Client, service: Service) -> None:
    created = client.post("/datasets", json=KEYED)
    path = created.headers["location"]
    assert created.json()["services"]["clustering"] == {
        "columns": ["n"], "order": "z_order", "unclustered_bytes": 64 * 1024 * 1024,
    }  # fmt: skip
    written(client, service, path, upsert(*({"id": at, "n": -at} for at in range(20))))
    job = clustered(client, service, path)
    [row] = [
        each for each in client.get(f"{path}/timeline").json()["items"] if each["action"] == "clustering"
    ]
    assert (job["committed_version"], row["version"]) == (2, 2)
    assert [row["n"] for row in client.get(f"{path}/rows").json()["rows"]] == list(range(-19, 1))
    # The same columns in another order are another clustering.
    assert clustered(client, service, path, columns=["n"])["committed_version"] == 3


def test_repeated_request_returns_its_job(client: httpx2.Client, service: Service, plain: str) -> None:
    sent = [
        client.post(
            f"{plain}/clusterings", json={"columns": ["n"]}, headers={"Idempotency-Key": "once"}
        ).json()
        for _ in range(2)
    ]
    assert sent[0]["id"] == sent[1]["id"]
    service.work()
    other = client.post(f"{plain}/clusterings", json={"columns": ["id"]}, headers={"Idempotency-Key": "once"})
    problem(other, 422, "idempotency-mismatch")


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> list[list[str]]:
    """Has something happen once while a table service has written its files and not published them yet."""
    planned: list[list[str]] = []
    run = TasksInProcess.run

    def slow(self: TasksInProcess, tasks: Sequence[EngineTask[Result]], tag: str) -> list[Result]:
        services = [task for task in tasks if isinstance(task, MergeBundle) and task.work is Work.TASKS]
        results = run(self, tasks, tag)
        if services:
            planned.append(
                sorted(file.path for each in services for task in each.tasks for file in task.files)
            )
            if len(planned) == 1:
                act()
        return results

    monkeypatch.setattr(TasksInProcess, "run", slow)
    return planned


def test_group_changed_during_clustering_is_clustered_again(
    client: httpx2.Client, service: Service, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete() -> None:
        body = {"operation": "delete", "where": "id IN (2, 7)"}
        assert client.post(f"{plain}/writes", json=body).status_code == 202
        assert service.run_waiting_writes()

    planned = meanwhile(monkeypatch, delete)
    job = clustered(client, service, plain, columns=["n"])
    assert len(planned) == 2
    assert set(planned[0]) & set(planned[1]), "what was not touched is not lost"
    assert (job["committed_version"], job["result"]["file_groups_left"]) == (5, 0)
    rows = client.get(f"{plain}/rows").json()["rows"]
    assert [row["n"] for row in rows] == [2, 4, 5, 6, 7, 9]
    emitted = client.get(f"{plain}/changes").json()["changes"]
    assert [change["op"] for change in emitted] == ["+A"] * 8 + ["-R"] * 2


def test_append_during_clustering_stays_beside_the_ordered_files(
    client: httpx2.Client, service: Service, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append() -> None:
        assert client.post(f"{plain}/writes", json=insert(9)).status_code == 202
        assert service.run_waiting_writes()

    planned = meanwhile(monkeypatch, append)
    assert clustered(client, service, plain, columns=["n"])["committed_version"] == 5
    assert len(planned) == 1
    assert sorted(row["id"] for row in client.get(f"{plain}/rows").json()["rows"]) == list(range(1, 10))


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "/columns"),
    ({"columns": ["id", "nothing"]}, "/columns/1"),
    ({"columns": ["tags"]}, "/columns/0"),
    ({"columns": ["n", "n"]}, "/columns/1"),
    ({"columns": []}, "/columns"),
    ({"columns": ["n"], "order": "hilbert"}, "/order"),
    ({"columns": ["n"], "partitions": ["day=*"]}, "/partitions"),
    ({"column": ["n"]}, "/column"),
)


def test_invalid_clustering_column_is_named(client: httpx2.Client, plain: str) -> None:
    for body, pointer in WRONG:
        answer = client.post(f"{plain}/clusterings", json=body)
        errors = problem(answer, 400, "invalid-request")["errors"]
        assert [error["pointer"] for error in errors] == [pointer], body


def test_policy_must_name_existing_columns(client: httpx2.Client) -> None:
    policy = {"columns": ["tags", "x"], "unclustered_bytes": 0}
    refused = client.post("/datasets", json={**PLAIN, "services": {"clustering": policy}})
    errors = problem(refused, 422, "invalid-dataset")["errors"]
    assert sorted(error["pointer"] for error in errors) == [
        "/services/clustering/columns/0",
        "/services/clustering/columns/1",
        "/services/clustering/unclustered_bytes",
    ]


def test_policy_follows_renamed_columns_and_refuses_their_drop(client: httpx2.Client) -> None:
    path = client.post("/datasets", json=KEYED).headers["location"]

    def change(**wanted: Any) -> httpx2.Response:
        tag = client.get(path).headers["etag"]
        return client.patch(path, json={"changes": [wanted]}, headers={"If-Match": tag})

    dropped = change(kind="drop", name="n")
    assert "clustered by" in problem(dropped, 422, "schema-change-refused")["errors"][0]["detail"]
    renamed = change(kind="rename", name="n", to="number")
    assert renamed.status_code == 200, renamed.text
    assert client.get(path).json()["services"]["clustering"]["columns"] == ["number"]
