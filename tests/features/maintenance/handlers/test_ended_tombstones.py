"""Tombstone files that a compaction by policy removes once their tombstones have ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from sqlalchemy import make_url

from app.features.maintenance.compose import maintenance_store
from app.features.maintenance.service.run_maintenance import RunMaintenance
from tests.support.http import upsert
from tests.support.postgres import TestServer
from tests.support.service import Service
from workers.wiring import reconcilers

HOUR, DAY = 3600, 86_400
FIELDS = [{"name": "id", "type": "int64"}, {"name": "at", "type": "int64"}]
READINGS = {"schema": {"fields": FIELDS}, "record_key": ["id"], "ordering_field": "at"}


class Table:
    """A dataset with a row and a tombstone."""

    def __init__(
        self, service: Service, client: httpx2.Client, postgres: TestServer, keep_seconds: int
    ) -> None:
        self.service, self.client, self._postgres = service, client, postgres
        new = {"name": "readings", **READINGS, "deletes": {"keep_seconds": keep_seconds}}
        self.path = client.post("/datasets", json=new).raise_for_status().headers["location"]
        self.write("upsert", *({"id": number, "at": 1} for number in (1, 2)))
        self.write("delete", {"id": 1, "at": 3})

    def write(self, operation: str, *rows: dict[str, Any]) -> None:
        body = upsert(*rows) | {"operation": operation}
        self.client.post(f"{self.path}/writes", json=body).raise_for_status()
        self.service.work()

    def age(self, seconds: int) -> None:
        """Moves all commits into the past."""
        dataset_id = self.client.get(self.path).json()["id"]
        database = str(make_url(self.service.settings.database_url).database)
        with self._postgres.administration(database) as connection:
            for what in ("commits SET committed_at = committed_at", "files SET written_at = written_at"):
                connection.execute(
                    f"UPDATE {what} - make_interval(secs => %s) WHERE dataset_id = %s", [seconds, dataset_id]
                )

    def tombstones(self) -> int:
        files = self.client.get(f"{self.path}/files").json()["items"]
        return sum(file["live_rows"] for file in files if file["kind"] == "tombstone")

    def compactions(self) -> list[str]:
        query = {"dataset": "readings", "kind": "compaction"}
        return [job["state"] for job in self.client.get("/jobs", params=query).json()["items"]]


@pytest.fixture
def table(service: Service, client: httpx2.Client, postgres: TestServer) -> Callable[[int], Table]:
    return lambda keep_seconds: Table(service, client, postgres, keep_seconds)


@pytest.fixture
def maintain(service: Service) -> Callable[[], None]:
    """Runs the compaction policy of every dataset that is due until it starts nothing."""
    tables = maintenance_store(service.platform)
    policies = {"compaction": reconcilers(service.worker)["compaction"]}
    maintenance = RunMaintenance(tables=tables, reconcilers=policies, owner="tests")

    def run() -> None:
        for _ in range(4):
            for tenant_id, dataset_id in tables.due(10_000):
                maintenance.run(tenant_id, dataset_id)
            service.work()

    return run


def test_policy_removes_a_file_whose_tombstones_have_ended(
    table: Callable[[int], Table], maintain: Callable[[], None]
) -> None:
    readings = table(HOUR)
    readings.age(2 * DAY)
    assert readings.tombstones() == 1
    maintain()
    assert (readings.compactions(), readings.tombstones()) == (["succeeded"], 0)
    readings.write("upsert", {"id": 2, "at": 2})
    maintain()
    assert readings.compactions() == ["succeeded"]


def test_policy_waits_until_tombstones_have_ended(
    table: Callable[[int], Table], maintain: Callable[[], None]
) -> None:
    readings = table(3 * DAY)
    readings.age(2 * DAY)
    maintain()
    assert (readings.compactions(), readings.tombstones()) == ([], 1)


def test_tombstones_that_last_longer_than_those_of_later_deletes_are_rewritten_once(
    table: Callable[[int], Table], maintain: Callable[[], None]
) -> None:
    readings = table(9 * DAY)
    etag = readings.client.get(readings.path).headers["etag"]
    readings.client.patch(
        readings.path, json={"deletes": {"keep_seconds": 0}}, headers={"If-Match": etag}
    ).raise_for_status()
    readings.age(2 * DAY)
    maintain()
    assert (readings.compactions(), readings.tombstones()) == (["succeeded"], 1)
    readings.write("upsert", {"id": 1, "at": 2})
    maintain()
    assert (readings.compactions(), readings.tombstones()) == (["succeeded"], 1)
