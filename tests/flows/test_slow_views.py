"""Views of two tenants that would run for hours, beside a view and a restore of a third one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.flows.conftest import tables_of_a_new_tenant
from tests.support.deployment import Deployment
from tests.support.left_out import left_out
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = [
    pytest.mark.stack,
    # They take two to three minutes.
    left_out("SECURITY_EXAMPLES", "security"),
]

SLICE_SECONDS = 20
ROWS = 400
# 200 rows of each of two notes, and 200 to the power of four pairs for each row of the first side. For that many, a
# task does not check whether it was stopped.
JOINS = " ".join(f"JOIN t0 AS {right} ON {left}.note = {right}.note" for left, right in pairwise("abcde"))
VALUE = "sha2(concat(a.note, CAST(b.id AS string), CAST(e.id AS string)), 512)"
SLOW = f"SELECT sum(length({VALUE})) AS x FROM t0 AS a {JOINS}"


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    """A deployment with one worker and a short time slice."""
    with (
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        Deployment.running(
            Path(directory), {"HEADWATER_DERIVED_SLICE_SECONDS": str(SLICE_SECONDS)}
        ) as running,
    ):
        running.processes["second"].kill()
        yield running


def tenant_with_rows(deployment: Deployment, stack: ExitStack, name: str) -> Table:
    [table] = tables_of_a_new_tenant(deployment, stack, name, 1)
    table.write("upsert", [{"id": number, "note": f"{number % 2}"} for number in range(ROWS)])
    return table


def new_view(table: Table, name: str, sql: str) -> str:
    answer = table.client.post("/views", json={"name": name, "sql": sql})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["links"]["self"])


def test_view_that_exceeds_its_time_limit_twice_pauses(deployment: Deployment, stack: ExitStack) -> None:
    table = tenant_with_rows(deployment, stack, "limited")
    [(tenant,)] = deployment.query("SELECT tenant_id FROM datasets WHERE id = %s", table.id)
    with deployment.client() as operator:
        answer = operator.patch(f"/tenants/{tenant}", json={"quotas": {"job_seconds": 3}})
        assert answer.status_code == 200, answer.text
    # Quotas reach the workers within five seconds.
    time.sleep(6)
    path = new_view(table, "slow", SLOW)

    def paused() -> dict[str, Any] | None:
        view: dict[str, Any] = table.client.get(path).json()
        return view if view["state"] == "paused" else None

    view = until(paused, "the view to pause", seconds_max=180)
    assert (view["freshness"], view["error"]["type"]) == ("failed", "/problems/time-limit-exceeded")
    assert "the view is paused" in view["error"]["detail"]
    table.write("upsert", [{"id": 1, "note": "changed"}])
    time.sleep(3)
    refreshes = deployment.query("SELECT state FROM jobs WHERE dataset_id = %s", path.rpartition("/")[2])
    assert refreshes == [("failed",)] * 2


def test_view_and_restore_of_a_third_tenant_end_soon_beside_endless_views_of_two(
    deployment: Deployment, stack: ExitStack
) -> None:
    [table] = tables_of_a_new_tenant(deployment, stack, "third", 1)
    table.write("upsert", [{"id": number, "note": "a"} for number in range(100)])
    others = [tenant_with_rows(deployment, stack, name) for name in ("one", "two")]
    of_others = [
        new_view(each, f"slow{number}", SLOW).rpartition("/")[2] for each in others for number in (1, 2)
    ]

    def running() -> int:
        query = "SELECT count(*) FROM jobs WHERE state = 'running' AND dataset_id = ANY(%s::uuid[])"
        return int(deployment.query(query, of_others)[0][0])

    until(lambda: running() >= 3, "all threads to be busy", seconds_max=120)
    path = new_view(table, "counts", "SELECT note, count(*) AS n FROM t0 GROUP BY note")
    # Restores do not wait for SQL.
    table.write("upsert", [{"id": 1, "note": "b"}])
    answer = table.client.post(f"{table.path}/restores", json={"version": 1})
    assert answer.status_code == 202, answer.text
    job = f"/jobs/{answer.json()['id']}"
    until(lambda: table.client.get(job).json()["state"] == "succeeded", "the restore to end", seconds_max=30)

    def current() -> bool:
        view: dict[str, Any] = table.client.get(path).json()
        assert view["freshness"] != "failed", view["error"]
        return view["freshness"] == "current"

    for number in range(3):
        until(current, "the view to be current", seconds_max=180)
        table.write("upsert", [{"id": number, "note": "c"}])
    until(current, "the view to be current", seconds_max=180)
    # The others are where they disturb no other refresh, and none has ended.
    until(
        lambda: (
            deployment.query(
                "SELECT DISTINCT slow, attempts - outages <= 1, deaths FROM jobs WHERE dataset_id = ANY(%s::uuid[])",
                of_others,
            )
            == [(True, True, 0)]
        ),
        "all others to be slow",
        seconds_max=120,
    )
