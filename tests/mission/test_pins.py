"""Reads keep what they read: pages of rows, and reads and restores that wait, through a clean of the history."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select, update

from app.timeline.tables import read_leases
from tests.support.http import problem, upsert


@pytest.fixture
def table(client, service, orders):
    """Three versions, of which each replaces the rows of the one before."""
    for note in ("a", "b", "c"):
        client.post(f"{orders}/writes", json=upsert({"id": 1, "note": note}, {"id": 2, "note": note}))
        service.work()
    return orders


@pytest.fixture
def clean(client, service, table):
    """Expires all versions but the latest that nothing keeps. Waiting jobs of other kinds stay."""

    def run():
        dataset_id = client.get(table).json()["id"]
        tenant_id = client.get("/me").json()["tenant"]["id"]
        answer = client.post(f"{table}/cleans", json={"versions": 1})
        assert answer.status_code == 202, answer.text
        return tenant_id, dataset_id, answer.headers["location"]

    return run


def lapse(service, tenant_id):
    """Lets all leases run out."""
    with service.database.tenant(tenant_id) as connection:
        connection.execute(update(read_leases).values(lease_until=func.now()))


def live(service, tenant_id):
    with service.database.tenant(tenant_id) as connection:
        return connection.execute(select(func.count()).select_from(read_leases)).scalar_one()


def test_page_of_rows_keeps_its_version_for_the_next_one(client, service, table, clean):
    first = client.get(f"{table}/rows", params={"version": 1, "limit": 1}).json()
    tenant_id, _, job = clean()
    service.work()
    assert client.get(job).json()["result"]["versions_expired"] == 2
    more = {"version": 1, "limit": 1, "page_token": first["next_page_token"]}
    second = client.get(f"{table}/rows", params=more).json()
    assert [row["note"] for row in (*first["rows"], *second["rows"])] == ["a", "a"]
    problem(client.get(f"{table}/rows", params={"version": 2}), 410, "version-expired")
    lapse(service, tenant_id)
    problem(client.get(f"{table}/rows", params=more), 410, "version-expired")


def test_last_page_of_rows_keeps_nothing(client, service, table, clean):
    assert len(client.get(f"{table}/rows", params={"version": 1}).json()["rows"]) == 2
    clean()
    service.work()
    problem(client.get(f"{table}/rows", params={"version": 1}), 410, "version-expired")


def test_waiting_read_keeps_its_version_until_it_has_ended(client, service, table, clean):
    tenant_id, _, job = clean()
    waiting = client.post(f"{table}/reads", json={"version": 1})
    assert waiting.status_code == 202, waiting.text
    assert live(service, tenant_id) == 1
    service.work()
    assert client.get(job).json()["state"] == "succeeded"
    result = client.get(f"{waiting.headers['location']}/result").json()
    assert [row["note"] for row in result["rows"]] == ["a", "a"]
    # The lease of a job that has ended keeps nothing.
    clean()
    service.work()
    problem(client.get(f"{table}/rows", params={"version": 1}), 410, "version-expired")


def test_cancelled_read_keeps_nothing(client, service, table, clean):
    waiting = client.post(f"{table}/reads", json={"version": 1})
    assert client.post(f"{waiting.headers['location']}/cancel").status_code == 200
    clean()
    service.work()
    problem(client.get(f"{table}/rows", params={"version": 1}), 410, "version-expired")


def test_repeated_request_keeps_its_version_once(client, service, table):
    tenant_id = client.get("/me").json()["tenant"]["id"]
    for _ in range(2):
        answer = client.post(f"{table}/reads", json={"version": 1}, headers={"Idempotency-Key": "once"})
        assert answer.status_code == 202, answer.text
    assert live(service, tenant_id) == 1


def test_waiting_restore_keeps_its_version(client, service, table, clean):
    _, _, job = clean()
    waiting = client.post(f"{table}/restores", json={"version": 1})
    assert waiting.status_code == 202, waiting.text
    tenant_id = client.get("/me").json()["tenant"]["id"]
    # The clean runs first, and the restore after it.
    while service._run_tasks():
        pass
    assert client.get(job).json()["state"] == "succeeded"
    assert client.get(waiting.headers["location"]).json()["state"] == "queued"
    assert live(service, tenant_id) == 1
    service.work()
    restored = client.get(waiting.headers["location"]).json()
    assert (restored["state"], restored["committed_version"]) == ("succeeded", 4)
    assert [row["note"] for row in client.get(f"{table}/rows").json()["rows"]] == ["a", "a"]
