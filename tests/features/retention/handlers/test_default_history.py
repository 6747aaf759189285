"""The history of a week that datasets have by default: what expires, and what keeps versions and changes longer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import make_url

from app.core.idempotency.repository import ReplyStore
from app.features.maintenance.compose import maintenance_store
from app.features.maintenance.service.run_maintenance import RunMaintenance
from app.features.retention.repository.feed import RetentionStore
from app.features.retention.service.feed import Retain
from app.infra.files.storage import LocalStorage
from tests.support.expired_rows import expire_rows
from tests.support.http import ORDERS, problem, upsert
from tests.support.postgres import TestServer
from tests.support.service import Service
from workers.wiring import reconcilers

# How many days ago the versions from 1 on were committed. Version 3 was the latest one a week ago.
AGES = (10, 9, 8, 2, 0)
NOTES = "abcde"
WEEK = 7 * 86_400

Age = Callable[..., None]
Maintain = Callable[[], None]


@pytest.fixture
def age(service: Service, postgres: TestServer, client: httpx2.Client) -> Age:
    """Gives the commits of a dataset, and all files, these ages in days."""

    def run(path: str, *days: int) -> None:
        with postgres.administration(str(make_url(service.settings.database_url).database)) as connection:
            for version, each in enumerate(days, start=1):
                connection.execute(
                    "UPDATE commits SET committed_at = clock_timestamp() - make_interval(days => %s)"
                    " WHERE dataset_id = %s AND version = %s",
                    [each, client.get(path).json()["id"], version],
                )
        before = time.time() - 86_400
        for file in Path(service.settings.storage_uri.removeprefix("file://")).glob("**/*.*"):
            os.utime(file, (before, before))

    return run


@pytest.fixture
def maintain(service: Service) -> Maintain:
    """Runs the policy of histories for every dataset that is due, and what it starts."""
    tables = maintenance_store(service.platform)
    policies = {"history": reconcilers(service.worker)["history"]}
    keeping = RunMaintenance(tables=tables, reconcilers=policies, owner="tests")

    def run() -> None:
        for tenant_id, dataset_id in tables.due(10_000):
            keeping.run(tenant_id, dataset_id)
        service.work()

    return run


def written(client: httpx2.Client, service: Service, path: str) -> None:
    """Makes a version for each note: row 1 changes, and there is one more row."""
    for number, note in enumerate(NOTES, start=2):
        rows = upsert({"id": 1, "note": note}, {"id": number, "note": note})
        assert client.post(f"{path}/writes", json=rows).status_code == 202
        service.work()


def rows(client: httpx2.Client, path: str, **query: Any) -> list[tuple[int, str]]:
    page = client.get(f"{path}/rows", params=query)
    assert page.status_code == 200, page.text
    return sorted((row["id"], row["note"]) for row in page.json()["rows"])


def cleans(client: httpx2.Client, path: str) -> list[dict[str, Any]]:
    query = {"dataset": client.get(path).json()["name"], "kind": "clean"}
    found: list[dict[str, Any]] = client.get("/jobs", params=query).json()["items"]
    return found


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_versions_older_than_a_week_expire_and_names_and_readers_keep_theirs(
    client: httpx2.Client, service: Service, age: Age, maintain: Maintain, table_type: str
) -> None:
    path = client.post("/datasets", json={**ORDERS, "table_type": table_type}).headers["location"]
    written(client, service, path)
    named, latest = rows(client, path, version=1), rows(client, path)
    assert client.post(f"{path}/tags", json={"name": "first", "version": 1}).status_code == 202
    service.work()
    age(path, *AGES)
    feed = client.get(f"{path}/changes").json()["changes"]
    consumer = f"{path}/consumers/late"
    assert client.put(consumer, json={"offset": feed[4]["offset"]}).status_code == 201
    maintain()
    [clean] = cleans(client, path)
    assert (clean["state"], clean["actor"]) == ("succeeded", None)
    assert (clean["result"]["earliest_version"], clean["result"]["versions_expired"]) == (3, 2)
    assert clean["result"]["files_deleted"] > 0
    assert client.get(path).json()["earliest_version"] == 3
    for version in (0, 2):
        problem(client.get(f"{path}/rows", params={"version": version}), 410, "version-expired")
    assert rows(client, path, tag="first") == named
    assert rows(client, path, version=3)[0] == (1, "c")
    assert rows(client, path) == latest
    # The feed has a retention of its own: no reader has lost a change, whatever the position.
    assert client.get(f"{path}/changes").json()["changes"] == feed
    page = client.get(f"{path}/changes", params={"consumer": "late"}).json()
    assert page["changes"] == feed[4:]
    assert client.get(consumer).json()["expired"] is False


def test_page_of_rows_that_is_followed_keeps_its_version(
    client: httpx2.Client, service: Service, orders: str, age: Age, maintain: Maintain
) -> None:
    written(client, service, orders)
    query = {"version": 2, "limit": 1}
    token = client.get(f"{orders}/rows", params=query).json()["next_page_token"]
    age(orders, *AGES)
    maintain()
    assert client.get(orders).json()["earliest_version"] == 3
    following = rows(client, orders, **query, page_token=token)
    assert len(following) == 1


def test_savepoint_keeps_its_version_and_the_feed_after_it(
    client: httpx2.Client, service: Service, age: Age, maintain: Maintain
) -> None:
    retention = {"changelog": {"producer": "full", "retention": {"seconds": WEEK}}}
    path = client.post("/datasets", json={**ORDERS, **retention}).headers["location"]
    written(client, service, path)
    age(path, *AGES)
    feed = client.get(f"{path}/changes").json()["changes"]
    before = rows(client, path, version=2)
    assert client.post(f"{path}/savepoints", json={"name": "kept", "version": 2}).status_code == 202
    service.work()
    maintain()
    retain(service).run()
    assert rows(client, path, version=2) == before
    answer = client.get(f"{path}/changes", params={"since_version": 3})
    assert answer.status_code == 200, answer.text
    changes = answer.json()["changes"]
    assert changes == [change for change in feed if change["version"] >= 3]


@pytest.mark.parametrize("max_lag", [None, {"seconds": WEEK}])
def test_consumer_eight_days_behind_a_feed_of_a_week(
    client: httpx2.Client, service: Service, age: Age, maintain: Maintain, max_lag: dict[str, int] | None
) -> None:
    """Its changes are kept for it, unless it has a max lag. Others get a clear refusal."""
    retention = {"changelog": {"producer": "full", "retention": {"seconds": WEEK}}}
    path = client.post("/datasets", json={**ORDERS, **retention}).headers["location"]
    written(client, service, path)
    age(path, *AGES)
    feed = client.get(f"{path}/changes").json()["changes"]
    position = next(change["offset"] for change in feed if change["version"] == 3)
    client.put(f"{path}/consumers/late", json={"offset": position, "max_lag": max_lag})
    maintain()
    retain(service).run()
    earliest = client.get(path).json()["earliest_offset"]
    kept = client.get(f"{path}/changes", params={"consumer": "late"})
    if max_lag is None:
        assert earliest == position
        assert kept.json()["changes"] == [change for change in feed if change["offset"] >= position]
    else:
        assert earliest > position
        problem(kept, 410, "offset-expired")
        assert client.get(f"{path}/consumers/late").json()["expired"] is True
    refusal = problem(client.get(f"{path}/changes", params={"since": 0}), 410, "offset-expired")
    assert (refusal["since"], refusal["earliest"]) == (0, earliest)


def test_null_keeps_every_version_and_idle_datasets_are_polled_no_more(
    client: httpx2.Client, service: Service, age: Age, maintain: Maintain
) -> None:
    everything = {"services": {"history": None}}
    path = client.post("/datasets", json={**ORDERS, **everything}).headers["location"]
    written(client, service, path)
    age(path, *AGES)
    maintain()
    assert cleans(client, path) == []
    assert rows(client, path, version=1) == [(1, "a"), (2, "a")]
    assert place_due(service, client, path) == []


def place_due(service: Service, client: httpx2.Client, path: str) -> list[str]:
    """The dataset, if its policies are due."""
    dataset_id = client.get(path).json()["id"]
    due = maintenance_store(service.platform).due(10_000)
    return [dataset for _, dataset in due if dataset == dataset_id]


def retain(service: Service) -> Retain:
    """A round of retention of feeds."""
    storage = LocalStorage(Path(service.settings.storage_uri.removeprefix("file://")))
    return Retain(
        feeds=RetentionStore(service.database),
        keys=ReplyStore(service.database),
        rows=expire_rows(service.database, storage, job_keep_seconds=3600),
        follower_lag_seconds=3600,
    )


def test_history_of_a_dataset_stays_where_its_other_services_change(client: httpx2.Client) -> None:
    created = client.post("/datasets", json={**ORDERS, "services": {"history": None}})
    path = created.headers["location"]

    def change(services: dict[str, Any]) -> Any:
        etag = client.get(path).headers["etag"]
        answer = client.patch(path, json={"services": services}, headers={"If-Match": etag})
        assert answer.status_code == 200, answer.text
        return answer.json()["services"]

    changed = change({"compaction": {"logs": 4}})
    assert (changed["history"], changed["compaction"]["logs"]) == (None, 4)
    # Other members that are left out get their defaults.
    assert change({"history": {"versions": 3}})["compaction"]["logs"] == 16
    assert change({})["history"]["versions"] == 3
    assert change({"history": None})["history"] is None
