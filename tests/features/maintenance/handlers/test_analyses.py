"""Analyses over HTTP: what they count, at which version, by whom they are started, and what stays of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.values import Grant, KeyScope
from app.features.maintenance.compose import maintenance_store
from app.features.maintenance.service.run_maintenance import RunMaintenance
from tests.support.http import problem, upsert
from tests.support.service import Service
from workers.wiring import reconcilers

Client = httpx2.Client
FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "day", "type": "date"},
    {"name": "who", "type": "string"},
    {"name": "tags", "type": "list<string>"},
]
VISITS: dict[str, Any] = {
    "name": "visits",
    "schema": {"fields": FIELDS},
    "record_key": ["id", "day"],
    "partition_by": ["day"],
    "table_type": "merge_on_read",
    "target_bytes": 64 * 1024,
    "bucket": {"mode": "fixed", "count": 1},
}
Maintain = Callable[[], None]


def row(number: int, who: str | None = "ada", **more: Any) -> dict[str, Any]:
    return {"id": number, "day": f"2026-11-{20 + number % 2}", "who": who, "tags": ["a", who], **more}


def written(client: Client, service: Service, path: str, body: dict[str, Any]) -> None:
    assert client.post(f"{path}/writes", json=body).status_code == 202
    service.work()


def analyzed(client: Client, service: Service, path: str) -> dict[str, Any]:
    """The job of an analysis that has run."""
    answer = client.post(f"{path}/analyses")
    assert answer.status_code == 202, answer.text
    assert answer.json()["kind"] == "analysis"
    service.work()
    ended: dict[str, Any] = client.get(answer.json()["links"]["self"]).json()
    assert ended["state"] == "succeeded", ended
    return ended


def counts(client: Client, path: str, columns: str = "id,day,who,tags") -> dict[str, tuple[Any, Any]]:
    """By column the distinct values, and the version at which they were counted."""
    found = client.get(f"{path}/statistics", params={"columns": columns})
    assert found.status_code == 200, found.text
    return {
        each["name"]: (each["distinct_count"], each["analyzed_version"]) for each in found.json()["columns"]
    }


def registered(client: Client, **members: Any) -> str:
    answer = client.post("/datasets", json={**VISITS, **members})
    assert answer.status_code == 201, answer.text
    path: str = answer.headers["location"]
    return path


@pytest.fixture
def visits(client: Client, service: Service) -> str:
    """The path of a table at version 1: 20 rows in two partitions."""
    path = registered(client)
    written(client, service, path, upsert(*(row(number, f"w{number % 5}") for number in range(20))))
    return path


@pytest.fixture
def maintain(service: Service) -> Maintain:
    """Runs the policy of analyses for every dataset that is due, and what it starts."""
    tables = maintenance_store(service.platform)
    policies = {"analysis": reconcilers(service.worker)["analysis"]}
    maintenance = RunMaintenance(tables=tables, reconcilers=policies, owner="tests")

    def run() -> None:
        for tenant_id, dataset_id in tables.due(10_000):
            maintenance.run(tenant_id, dataset_id)
        service.work()

    return run


def test_distinct_values_are_counted_and_stay_with_their_version(
    client: Client, service: Service, visits: str
) -> None:
    assert set(counts(client, visits).values()) == {(None, None)}
    job = analyzed(client, service, visits)
    assert (job["committed_version"], job["result"]) == (None, {"version": 1, "rows": 20, "columns": 4})
    assert counts(client, visits) == {"id": (20, 1), "day": (2, 1), "who": (5, 1), "tags": (5, 1)}
    assert client.get(visits).json()["version"] == 1
    assert [each["action"] for each in client.get(f"{visits}/timeline").json()["items"]] == ["commit"]
    # Rows that are deleted, by a deletion vector, and nulls are no values.
    gone = [{"id": number, "day": f"2026-11-{20 + number % 2}"} for number in (1, 6, 11, 16, 2)]
    written(client, service, visits, {"operation": "delete", "source": {"kind": "rows", "rows": gone}})
    written(client, service, visits, upsert(row(0, None)))
    assert counts(client, visits)["id"] == (20, 1)
    assert analyzed(client, service, visits)["result"] == {"version": 3, "rows": 15, "columns": 4}
    assert counts(client, visits) == {"id": (15, 3), "day": (2, 3), "who": (4, 3), "tags": (5, 3)}


def test_repeated_request_returns_its_job(client: Client, service: Service, visits: str) -> None:
    sent = [client.post(f"{visits}/analyses", headers={"Idempotency-Key": "once"}).json() for _ in range(2)]
    assert sent[0]["id"] == sent[1]["id"]
    with service.working():
        answer = client.post(f"{visits}/analyses", headers={"Prefer": "wait=20"})
    assert (answer.status_code, answer.json()["state"]) == (200, "succeeded")


def test_analysis_runs_beside_other_table_services(client: Client, service: Service, visits: str) -> None:
    jobs = [client.post(f"{visits}/{name}").json() for name in ("compactions", "analyses")]
    service.work()
    ended = [client.get(job["links"]["self"]).json()["state"] for job in jobs]
    assert ended == ["succeeded", "succeeded"]


def test_columns_are_found_by_their_ids(client: Client, service: Service, visits: str) -> None:
    analyzed(client, service, visits)

    def change(*changes: dict[str, Any]) -> None:
        tag = client.get(visits).headers["etag"]
        answer = client.patch(visits, json={"changes": changes}, headers={"If-Match": tag})
        assert answer.status_code == 200, answer.text

    change({"kind": "rename", "name": "who", "to": "person"}, {"kind": "drop", "name": "tags"})
    change({"kind": "add", "field": {"name": "tags", "type": "string"}})
    assert counts(client, visits, "person,tags") == {"person": (5, 1), "tags": (None, None)}
    analyzed(client, service, visits)
    assert counts(client, visits, "person,tags") == {"person": (5, 3), "tags": (0, 3)}


def test_analysis_of_a_restored_table_is_of_the_version_that_it_read(
    client: Client, service: Service, visits: str
) -> None:
    analyzed(client, service, visits)
    written(client, service, visits, upsert(row(99, "new")))
    analyzed(client, service, visits)
    assert counts(client, visits, "who") == {"who": (6, 2)}
    assert client.post(f"{visits}/restores", json={"version": 1}).status_code == 202
    service.work()
    assert client.get(visits).json()["version"] == 3
    # It keeps what it has found, also when the version has expired.
    assert client.post(f"{visits}/cleans", json={"versions": 1}).status_code == 202
    service.work()
    assert client.get(f"{visits}/statistics").json()["versions"]["earliest"] == 3
    assert counts(client, visits, "who") == {"who": (6, 2)}
    analyzed(client, service, visits)
    assert counts(client, visits, "who") == {"who": (5, 3)}


def test_empty_and_append_only_tables_are_analyzed(client: Client, service: Service) -> None:
    path = client.post("/datasets", json={"name": "log", "schema": {"fields": FIELDS}}).headers["location"]
    assert analyzed(client, service, path)["result"] == {"version": 0, "rows": 0, "columns": 4}
    assert set(counts(client, path).values()) == {(0, 0)}
    rows = [{**row(number), "day": None} for number in (1, 2, 2)]
    written(client, service, path, {"operation": "insert", "source": {"kind": "rows", "rows": rows}})
    analyzed(client, service, path)
    assert counts(client, path) == {"id": (2, 1), "day": (0, 1), "who": (1, 1), "tags": (1, 1)}


def test_rows_of_logs_are_counted_as_readers_see_them(client: Client, service: Service) -> None:
    path = registered(client, changelog={"producer": "none"}, services={"compaction": None})
    written(client, service, path, upsert(*(row(number, f"w{number}") for number in range(4))))
    written(client, service, path, upsert(row(0, "w1"), row(7, "w7")))
    assert client.get(f"{path}/statistics").json()["files"]["logs"] > 0
    assert analyzed(client, service, path)["result"]["rows"] == 5
    assert counts(client, path, "id,who") == {"id": (5, 2), "who": (4, 2)}


def test_policy_starts_analyses(client: Client, service: Service, maintain: Maintain) -> None:
    policy = {"changed_ratio": None, "versions": 2}
    path = registered(client, services={"analysis": policy})
    assert client.get(path).json()["services"]["analysis"] == policy
    maintain()
    assert counts(client, path, "id") == {"id": (None, None)}, "there is nothing yet"
    for number in range(1, 5):
        written(client, service, path, upsert(row(number)))
        maintain()
        assert counts(client, path, "id")["id"][1] == (1 if number < 3 else 3)
    jobs = client.get("/jobs", params={"dataset": "visits", "kind": "analysis"}).json()["items"]
    assert [(job["actor"], job["state"]) for job in jobs] == [(None, "succeeded")] * 2


def test_dataset_without_the_policy_is_not_analyzed(
    client: Client, service: Service, visits: str, maintain: Maintain
) -> None:
    maintain()
    assert "analysis" not in client.get(visits).json()["services"]
    assert client.get("/jobs", params={"kind": "analysis"}).json()["items"] == []
    tag = client.get(visits).headers["etag"]
    body = {"services": {"analysis": {}}}
    changed = client.patch(visits, json=body, headers={"If-Match": tag}).json()
    assert changed["services"]["analysis"] == {"changed_ratio": 0.2, "versions": None}
    maintain()
    assert counts(client, visits, "id") == {"id": (20, 2)}


def test_invalid_policy_is_refused(client: Client) -> None:
    policy = {"changed_ratio": 0, "versions": 0}
    refused = client.post("/datasets", json={**VISITS, "services": {"analysis": policy}})
    errors = problem(refused, 422, "invalid-dataset")["errors"]
    assert sorted(error["pointer"] for error in errors) == [
        "/services/analysis/changed_ratio",
        "/services/analysis/versions",
    ]


@pytest.mark.parametrize("part", [{"mask": ("who",)}, {"where": "id < 5"}], ids=["columns", "rows"])
def test_key_that_sees_a_part_gets_no_counts_as_no_other_statistics(
    client: Client, service: Service, visits: str, part: dict[str, Any]
) -> None:
    analyzed(client, service, visits)
    owner = CredentialStore(service.database).authenticate(client.headers["authorization"].split()[1])
    assert owner is not None
    scopes = (KeyScope.READ, KeyScope.MANAGE)
    grants = (
        Grant(datasets="visits", scopes=(KeyScope.READ,), **part),
        Grant(datasets="visits", scopes=(KeyScope.MANAGE,)),
    )
    key = service.tenants.make_key(owner.tenant_id, scopes, grants=grants)
    with service.client(key.api_key) as restricted:
        for answer in (
            restricted.get(f"{visits}/statistics", params={"columns": "id"}),
            restricted.post(f"{visits}/analyses"),
        ):
            problem(answer, 403, "restricted-grant")


def test_analysis_needs_the_scope_manage_and_the_tenant(
    service: Service, visits: str, new_client: Callable[..., Client]
) -> None:
    problem(new_client().post(f"{visits}/analyses"), 404, "not-found")
    problem(new_client(("read", "write")).post(f"{visits}/analyses"), 403, "forbidden")


def test_result_is_deleted_with_the_dataset(client: Client, service: Service, visits: str) -> None:
    analyzed(client, service, visits)
    assert client.delete(visits, headers={"If-Match": "*"}).status_code == 204
    again = registered(client)
    assert set(counts(client, again).values()) == {(None, None)}
