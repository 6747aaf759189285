"""A conflict names the commit that won, over HTTP: its instant, its actor, its file groups, and whether to retry."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx2
import pytest

from tests.features.writes.handlers.test_write_modes import KEYED, Written, row
from tests.support.http import problem
from tests.support.races import overtaken
from tests.support.service import Service


class Tenant:
    """A dataset of a tenant, and a second key of the tenant with which another writer writes to it."""

    def __init__(self, client: httpx2.Client, service: Service) -> None:
        self.table = Written(client, service, KEYED)
        made = client.post("/keys", json={"name": "rival", "scopes": ["read", "write"]})
        assert made.status_code == 201, made.text
        self.rival_id = made.json()["id"]
        self.rival = service.client(made.json()["api_key"])
        self._writes = count(1)

    def send_as_rival(self) -> httpx2.Response:
        rows = [row("a", 1, f"rival {next(self._writes)}")]
        body = {"operation": "upsert", "source": {"kind": "rows", "rows": rows}}
        return self.rival.post(f"{self.table.path}/writes", json=body)

    def error_of(self, accepted: httpx2.Response) -> dict[str, Any]:
        assert accepted.status_code == 202, accepted.text
        job: dict[str, Any] = self.table.client.get(accepted.headers["location"]).json()
        assert job["state"] == "failed", job
        error: dict[str, Any] = job["error"]
        return error

    def assert_named(self, error: dict[str, Any], *, retryable: bool, groups: set[str]) -> None:
        """The error names the latest write, which the other key requested."""
        latest = self.table.client.get(f"{self.table.path}/timeline", params={"state": "completed"}).json()
        winner = latest["items"][0]
        assert (error["winner"], error["winner_version"]) == (winner["id"], winner["version"])
        assert (error["actor"], error["actor_name"]) == (self.rival_id, "rival")
        assert error["retryable"] is retryable
        assert (set(error["file_groups"]), error["file_group_count"]) == (groups, len(groups))

    @property
    def groups(self) -> set[str]:
        """The file groups of the table."""
        files = self.table.client.get(f"{self.table.path}/files").json()["items"]
        return {file["file_group"] for file in files}


@pytest.fixture
def tenant(client, service):
    made = Tenant(client, service)
    yield made
    made.rival.close()


def test_conflict_of_two_writers_names_the_winning_commit(tenant, service):
    accepted = tenant.table.send("upsert", [row("a", 1), row("b", 1)])
    overtaken(service, tenant.send_as_rival, times=2, replans_max=1)
    error = tenant.error_of(accepted)
    assert error["type"] == "/problems/commit-conflict"
    tenant.assert_named(error, retryable=True, groups=tenant.groups)
    assert tenant.table.rows == [row("a", 1, "rival 2")]


def test_write_that_wins_in_the_end_names_what_it_was_planned_again_after(tenant, service):
    accepted = tenant.table.send("upsert", [row("a", 2), row("b", 1)])
    overtaken(service, tenant.send_as_rival, times=2)
    job = tenant.table.client.get(accepted.headers["location"]).json()
    assert (job["state"], job["replans"], job["committed_version"]) == ("succeeded", 2, 3)
    assert job["result"]["winner_version"] == 2
    timeline = tenant.table.client.get(f"{tenant.table.path}/timeline").json()["items"]
    races = {each["version"]: (each["replans"], each["winner_version"]) for each in timeline}
    assert races == {1: (0, None), 2: (0, None), 3: (2, 2)}


def test_conflict_of_an_expected_version_names_the_winning_commit(tenant, service):
    tenant.table.write("upsert", [row("b", 1)])
    before = tenant.groups
    accepted = tenant.table.send("upsert", [row("b", 1, "new")], expected_version=1)
    overtaken(service, tenant.send_as_rival)
    error = tenant.error_of(accepted)
    assert (error["expected_version"], error["head_version"]) == (1, 2)
    tenant.assert_named(error, retryable=False, groups=tenant.groups - before)
    # The same, where the version has already passed at the request.
    refused = problem(tenant.table.send("upsert", [row("b", 2)], expected_version=1), 409, "commit-conflict")
    tenant.assert_named(refused, retryable=False, groups=tenant.groups - before)
    body = {"version": 0, "expected_version": 1}
    refused = problem(
        tenant.table.client.post(f"{tenant.table.path}/restores", json=body), 409, "commit-conflict"
    )
    tenant.assert_named(refused, retryable=False, groups=tenant.groups - before)


def test_conflict_of_a_save_mode_names_the_winning_commit(tenant, service):
    accepted = tenant.table.send("insert", [row("c", 1)], mode="error_if_exists")
    overtaken(service, tenant.send_as_rival)
    error = tenant.error_of(accepted)
    assert (error["type"], error["version"]) == ("/problems/data-exists", 1)
    tenant.assert_named(error, retryable=False, groups=tenant.groups)


def test_conflict_of_a_transaction_names_the_winning_commit(tenant, client, service):
    beside = Written(client, service, KEYED)
    source = {"kind": "rows", "rows": [row("a", 1)]}
    writes = [
        {"dataset": path.rsplit("/", 1)[-1], "operation": "upsert", "source": source}
        for path in (beside.path, tenant.table.path)
    ]
    accepted = client.post("/transactions", json={"writes": writes})
    overtaken(service, tenant.send_as_rival, times=2, replans_max=0)
    done = client.get(accepted.headers["location"]).json()
    assert done["state"] == "failed"
    errors = {job["error"]["type"]: job["error"] for job in done["jobs"]}
    tenant.assert_named(errors["/problems/commit-conflict"], retryable=True, groups=tenant.groups)
    assert beside.rows == []


def test_conflict_with_a_change_of_the_dataset_names_its_key(tenant):
    path = tenant.table.path
    tenant.table.write("upsert", [row("a", 1)])
    answer = tenant.table.client.patch(
        path, json={"changelog": {"retention": {"changes": 100}}}, headers={"If-Match": '"1"'}
    )
    assert answer.status_code == 200, answer.text
    refused = problem(tenant.table.send("upsert", [row("a", 2)], expected_version=1), 409, "commit-conflict")
    me = tenant.table.client.get("/me").json()
    assert (refused["winner_version"], refused["actor"]) == (2, me["key"]["id"])
    assert (refused["file_groups"], refused["file_group_count"]) == ([], 0)
