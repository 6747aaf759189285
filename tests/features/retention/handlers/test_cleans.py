"""Cleans over HTTP: what goes, what stays readable, and what readers get of the rest."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import Uuid, bindparam, func, make_url, text, update

from app.core.jobs.kinds.kind import JobKind
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.tables import read_leases
from app.features.reads.service.rows import ROW_PAGES
from app.features.retention.service.run_clean import RunClean
from tests.support.http import ORDERS, problem, upsert
from tests.support.postgres import TestServer
from tests.support.service import Service


def cleaned(client: httpx2.Client, service: Service, path: str, **body: Any) -> dict[str, Any]:
    """The result of a clean that has run, a day after all that was before it."""
    tenant_id, dataset_id = place_of(client, service, path)
    with service.database.tenant(tenant_id) as connection:
        pages = update(read_leases).where(read_leases.c.reader == ROW_PAGES)
        connection.execute(pages.where(read_leases.c.dataset_id == dataset_id).values(lease_until=func.now()))
    before = time.time() - 86_400
    for file in _storage(service).glob("**/*.*"):
        os.utime(file, (before, before))
    answer = client.post(f"{path}/cleans", json=body)
    assert answer.status_code == 202, answer.text
    service.work()
    ended = client.get(answer.json()["links"]["self"]).json()
    assert (ended["kind"], ended["state"], ended["committed_version"]) == ("clean", "succeeded", None), ended
    found: dict[str, Any] = ended["result"]
    return found


def rows(client: httpx2.Client, path: str, **query: Any) -> list[dict[str, Any]]:
    """The rows of all pages, each of one row."""
    found: list[dict[str, Any]] = []
    query = {"limit": 1, **query}
    while True:
        page = client.get(f"{path}/rows", params=query)
        assert page.status_code == 200, page.text
        found += page.json()["rows"]
        token = page.json()["next_page_token"]
        if token is None:
            return sorted(found, key=lambda row: str(row["id"]))
        query["page_token"] = token


@pytest.fixture
def table(client: httpx2.Client, service: Service) -> str:
    """Four versions of a table with logs, the last of them a compaction."""
    definition = {**ORDERS, "table_type": "merge_on_read", "changelog": {"producer": "input"}}
    path: str = client.post("/datasets", json=definition).headers["location"]
    for note in "abc":
        client.post(f"{path}/writes", json=upsert({"id": 1, "note": note}, {"id": ord(note), "note": note}))
        service.work()
    client.post(f"{path}/compactions")
    service.work()
    assert client.get(path).json()["version"] == 4
    return path


def place_of(client: httpx2.Client, service: Service, table: str) -> tuple[str, str]:
    """Tenant and id of the dataset."""
    dataset_id: str = client.get(table).json()["id"]
    [folder] = _storage(service).glob(f"*/{dataset_id}")
    return folder.parent.name, dataset_id


def _storage(service: Service) -> Path:
    return Path(service.settings.storage_uri.removeprefix("file://"))


def test_read_lease_keeps_its_version_through_compaction_and_clean(
    client: httpx2.Client, service: Service, table: str
) -> None:
    place = place_of(client, service, table)
    leases = ReadLeaseStore(service.database)
    leases.acquire(*place, 2, "reader", 60)
    before, latest = rows(client, table, version=2), rows(client, table)
    token = client.get(f"{table}/rows", params={"version": 2, "limit": 1}).json()["next_page_token"]
    feed = client.get(f"{table}/changes").json()["changes"]

    result = cleaned(client, service, table, versions=1)
    assert (result["earliest_version"], result["versions_expired"]) == (4, 3)
    # The third log.
    assert (result["files_expired"], result["instants_archived"], result["files_deleted"]) == (1, 0, 1)
    assert result["bytes_expired"] > 0
    shown = client.get(table).json()
    assert (shown["version"], shown["earliest_version"]) == (4, 4)
    assert rows(client, table, version=2) == before
    assert rows(client, table) == latest
    assert client.get(f"{table}/changes").json()["changes"] == feed
    for version in (1, 3):
        refusal = problem(client.get(f"{table}/rows", params={"version": version}), 410, "version-expired")
        assert (refusal["version"], refusal["earliest"]) == (version, 4)

    leases.release(*place, "reader")
    # The dataset itself keeps every version, but what was held is free now.
    assert cleaned(client, service, table)["files_expired"] == 4
    for query in ({"version": 2}, {"page_token": token}):
        problem(client.get(f"{table}/rows", params=query), 410, "version-expired")
    assert rows(client, table) == latest
    assert client.get(f"{table}/changes").json()["changes"] == feed


def test_named_version_survives_a_clean(client: httpx2.Client, service: Service, table: str) -> None:
    before = rows(client, table, version=2)
    client.post(f"{table}/tags", json={"name": "second", "version": 2})
    service.work()
    assert cleaned(client, service, table, versions=2, seconds=0)["earliest_version"] == 3
    assert rows(client, table, tag="second") == before == rows(client, table, version=2)
    client.delete(f"{table}/tags/second")
    assert cleaned(client, service, table)["files_expired"] == 0
    problem(client.get(f"{table}/rows", params={"version": 2}), 410, "version-expired")


def test_verification_starts_at_the_earliest_retained_version(
    client: httpx2.Client, service: Service, orders: str, postgres: TestServer
) -> None:
    """Though its feed begins earlier."""
    for note in "abcde":
        client.post(f"{orders}/writes", json=upsert({"id": 1, "note": note}, {"id": ord(note), "note": note}))
        service.work()

    def verified(**body: int) -> dict[str, Any]:
        job = client.post(f"{orders}/verifications", json=body).json()
        service.work()
        ended: dict[str, Any] = client.get(job["links"]["self"]).json()
        return ended

    place = place_of(client, service, orders)
    with postgres.administration(str(make_url(service.settings.database_url).database)) as connection:
        # The feed begins behind version 2.
        connection.execute(
            "UPDATE heads SET earliest_offset = (SELECT next_offset FROM commits WHERE version = 2 "
            "AND dataset_id = %s) WHERE dataset_id = %s",
            [place[1]] * 2,
        )
    assert verified()["result"]["from_version"] == 2
    cleaned(client, service, orders, versions=2)
    result = verified()["result"]
    assert (result["equal"], result["from_version"], result["changes"]) == (True, 4, 3)
    assert (result["first_offset"], result["next_offset"]) == (11, 14)
    error = verified(version=3)["error"]
    assert (error["type"], error["earliest"]) == ("/problems/version-expired", 4)


def test_archived_instants_stay_in_the_timeline(client: httpx2.Client, service: Service, orders: str) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    definition = client.get(orders)
    changed = client.patch(
        orders,
        json={"services": {"timeline": {"instants": 100}}},
        headers={"If-Match": definition.headers["etag"]},
    )
    assert changed.status_code == 200, changed.text
    place = place_of(client, service, orders)
    with service.database.tenant(place[0]) as connection:
        of_old = text(
            "INSERT INTO instants (dataset_id, id, action, operation, state, counts) "
            "SELECT :dataset, lpad(n::text, 20, '0') || '-000000', 'commit', 'upsert', 'completed', '{}' "
            "FROM generate_series(1, 120) AS n"
        )
        connection.execute(of_old.bindparams(bindparam("dataset", place[1], type_=Uuid(as_uuid=False))))

    def timeline() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        query: dict[str, Any] = {"page_size": 50}
        while True:
            page = client.get(f"{orders}/timeline", params=query).json()
            found += page["items"]
            if page["next_page_token"] is None:
                return found
            query["page_token"] = page["next_page_token"]

    before = timeline()
    assert len(before) == 122
    handlers = service.run_tasks.handlers
    clean = handlers[JobKind.CLEAN]
    assert isinstance(clean, RunClean)
    small = replace(service.run_tasks, handlers={**handlers, JobKind.CLEAN: replace(clean, archived_min=1)})
    job = client.post(f"{orders}/cleans").json()
    assert small.run(*place)
    ended = client.get(job["links"]["self"]).json()
    assert ended["result"]["instants_archived"] == 23
    [entry, *rest] = timeline()
    assert (entry["action"], entry["state"], entry["job_id"]) == ("clean", "completed", job["id"])
    assert rest == before
    assert client.get(f"{orders}/timeline", params={"action": "schema"}).json()["items"] == [before[0]]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({"versions": 0}, "/versions"), ({"seconds": -1}, "/seconds"), ({"days": 1}, "/days")],
)
def test_invalid_clean_is_refused(
    client: httpx2.Client, orders: str, body: dict[str, Any], pointer: str
) -> None:
    refused = problem(client.post(f"{orders}/cleans", json=body), 400, "invalid-request")
    assert [error["pointer"] for error in refused["errors"]] == [pointer]


def test_clean_is_idempotent_and_requires_the_write_scope(
    client: httpx2.Client, new_client: Callable[..., httpx2.Client], orders: str
) -> None:
    headers = {"Idempotency-Key": "once"}
    first = client.post(f"{orders}/cleans", headers=headers, json={"versions": 3})
    again = client.post(f"{orders}/cleans", headers=headers, json={"versions": 3})
    assert (again.headers["idempotency-replayed"], again.json()["id"]) == ("true", first.json()["id"])
    problem(client.post(f"{orders}/cleans", headers=headers), 422, "idempotency-mismatch")
    problem(new_client().post(f"{orders}/cleans"), 404, "not-found")
    problem(new_client(("read",)).post(f"{orders}/cleans"), 403, "forbidden")
