"""Reads keep what they read: pages of rows, and reads and restores that wait, through a clean of the history."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import func, select, update

from app.core.timeline.errors import OffsetExpired
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.tables import read_leases
from app.features.retention.repository.feed import RetentionStore
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


@pytest.fixture
def cut(client, service, table):
    """Cuts the feed to one change, as far as nothing keeps it; returns its beginning."""
    body = {"changelog": {"retention": {"changes": 1}}}
    etag = client.get(table).headers["etag"]
    assert client.patch(table, json=body, headers={"If-Match": etag}).status_code == 200

    def run():
        dataset = client.get(table).json()
        tenant_id = client.get("/me").json()["tenant"]["id"]
        store = RetentionStore(service.database)
        store.cut(tenant_id, dataset["id"], follower_lag_seconds=3600)
        store.expire_files(tenant_id, dataset["id"], 1_000)
        return client.get(table).json()["earliest_offset"]

    return run


def test_waiting_incremental_read_keeps_the_changes_of_its_range(client, service, table, clean, cut):
    waiting = client.post(f"{table}/reads", json={"query": "incremental", "begin": 1, "end": 2})
    assert waiting.status_code == 202, waiting.text
    # The two changes of version 1 are before the range.
    assert cut() == 2
    service.work()
    result = client.get(f"{waiting.headers['location']}/result").json()
    assert [row["note"] for row in result["rows"]] == ["b", "b"]
    # The lease of a job that has ended keeps nothing.
    assert cut() > 2
    refused = client.post(f"{table}/reads", json={"query": "incremental", "begin": 1, "end": 2})
    problem(refused, 410, "offset-expired")


def test_waiting_incremental_read_keeps_no_files_of_the_table(client, service, table, clean, cut):
    client.post(f"{table}/reads", json={"query": "incremental", "begin": 1, "end": 2})
    _, _, job = clean()
    while service._run_tasks():
        pass
    assert client.get(job).json()["result"]["versions_expired"] >= 2
    problem(client.get(f"{table}/rows", params={"version": 1}), 410, "version-expired")


def test_cancelled_incremental_read_keeps_no_changes(client, service, table, cut):
    waiting = client.post(f"{table}/reads", json={"query": "incremental", "begin": 1, "end": 2})
    assert client.post(f"{waiting.headers['location']}/cancel").status_code == 200
    assert cut() > 2


def test_incremental_read_that_waits_too_long_loses_its_changes(client, service, table, cut):
    waiting = client.post(f"{table}/reads", json={"query": "incremental", "begin": 1, "end": 2})
    lapse(service, client.get("/me").json()["tenant"]["id"])
    assert cut() > 2
    service.work()
    job = client.get(waiting.headers["location"]).json()
    assert (job["state"], job["error"]["type"].rpartition("/")[2]) == ("failed", "offset-expired")


def test_refused_lease_of_a_feed_keeps_nothing(client, service, table, cut):
    assert cut() > 2
    refused = client.post(f"{table}/reads", json={"query": "incremental", "begin": 0})
    problem(refused, 410, "offset-expired")
    assert live(service, client.get("/me").json()["tenant"]["id"]) == 0


def test_lease_of_a_feed_and_a_cut_exclude_each_other(client, service, table, cut):
    """Whichever is first: changes that are leased are there."""
    tenant_id, dataset_id = client.get("/me").json()["tenant"]["id"], client.get(table).json()["id"]
    leases, outcomes = ReadLeaseStore(service.database), []
    start = threading.Barrier(2)

    def lease():
        start.wait()
        try:
            leases.acquire_feed(tenant_id, dataset_id, 1, "reader", 60.0)
            outcomes.append("leased")
        except OffsetExpired:
            outcomes.append("expired")

    thread = threading.Thread(target=lease)
    thread.start()
    start.wait()
    earliest = cut()
    thread.join()
    # With the lease first, the cut stops at it; a cut after the lease stops there, too.
    assert (outcomes, earliest <= 2) in ((["leased"], True), (["expired"], False))
