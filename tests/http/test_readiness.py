"""Whether a process can take requests, and the checks of the whole service."""

from __future__ import annotations

import asyncio
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from app.access.tenants.values import new_api_key
from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.values import KnownProcess, ProcessKind, ProcessReport
from app.features.alerts.service import health
from app.features.alerts.service.health import disk_check, loops_check, processes_check, spark_check
from app.features.alerts.values import ServiceCheck, ServiceHealth, ServiceState, Severity
from app.infra.db import answers
from app.infra.db.answers import Answers
from app.infra.files.probe import StorageProbe
from app.infra.files.storage import LocalStorage
from app.process.readiness import readiness
from tests.support.health import service_checks
from tests.support.http import TLS, problem
from tests.support.postgres import TestServer
from tests.support.service import Service
from tests.support.waiting import until

MEBIBYTE = 1024 * 1024
SINCE = datetime(2026, 11, 22, 8, tzinfo=UTC)


def test_process_without_workers_is_ready_and_the_service_is_failing(
    client: httpx2.Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "START_SECONDS", 0.0)
    with httpx2.Client(base_url=service.url, trust_env=False, verify=TLS) as anonymous:
        ready = anonymous.get("/health/ready")
        problem(anonymous.get("/health/service"), 401, "unauthorized")
    check = {"name": "database", "ok": True, "required": False, "detail": ""}
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "checks": [check]})
    answer = client.get("/health/service")
    assert (answer.status_code, answer.json()["state"]) == (503, "failing")
    [process] = [each for each in answer.json()["processes"] if each["kind"] == "api"]
    assert (process["alive"], process["still"], process["executors"]) == (True, {}, None)
    assert process["pid"] == os.getpid()
    assert process["disk"]["free_bytes"] <= process["disk"]["total_bytes"]
    checks = answer.json()["checks"]
    assert [name for name, each in checks.items() if not each["ok"]] == ["workers"]
    assert checks["workers"]["severity"] == "critical"
    assert "writes are accepted and wait" in checks["workers"]["detail"]


def test_service_without_workers_is_starting_until_one_has_reported(
    client: httpx2.Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "START_SECONDS", 3_600.0)
    answer = client.get("/health/service")
    check = answer.json()["checks"]["workers"]
    assert (answer.status_code, answer.json()["state"]) == (200, "starting")
    assert (check["ok"], check["severity"]) == (False, "warning")
    assert "the service is starting" in check["detail"]
    # A worker that has reported since the start of the API and is silent now is a failure.
    register = ProcessStore(service.database)
    register.report("gone", ProcessReport(kind=ProcessKind.WORKER))
    try:
        silence = text("UPDATE workers SET polled_at = now() - interval '20 seconds' WHERE id = 'gone'")
        with service.database.relay() as connection:
            connection.execute(silence)
        monkeypatch.setattr(health, "monotonic", lambda: monotonic() + 60.0)
        answer = client.get("/health/service")
        assert (answer.status_code, answer.json()["state"]) == (503, "failing")
    finally:
        register.ended("gone")


def test_process_that_is_about_to_stop_is_not_ready(client: httpx2.Client, service: Service) -> None:
    service.api.draining.set()
    try:
        ready = client.get("/health/ready")
    finally:
        service.api.draining.clear()
    assert ready.status_code == 503
    assert [check["name"] for check in ready.json()["checks"]] == ["process"]
    assert client.get("/health/ready").status_code == 200


def test_process_is_ready_while_postgres_stands_still_and_requests_get_503(
    client: httpx2.Client, service: Service, postgres: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "SILENCE_SECONDS", 1.0)
    # It has found its database before.
    assert client.get("/health/ready").status_code == 200
    requests: list[httpx2.Response] = []
    assert client.get("/tenants").status_code == 200
    with postgres.frozen():
        # They wait for an answer when the server is found to be silent.
        threads = [
            threading.Thread(target=lambda: requests.append(client.get("/datasets"))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for answer in requests:
            assert problem(answer, 503, "unavailable")["detail"].startswith("The database does not answer")
        # The client gives up after the time that probes have.
        ready = client.get("/health/ready", timeout=2)
        assert ready.status_code == 200
        [check] = ready.json()["checks"]
        assert (check["name"], check["ok"], check["required"]) == ("database", False, False)
        # The operator's key was valid before. Nothing else is served to it.
        health = client.get("/health/service")
        assert (health.status_code, health.json()["state"]) == (503, "failing")
        assert sorted(health.json()["checks"]) == ["database", "redis", "storage"]
        assert health.json()["checks"]["database"]["detail"].startswith("The database does not answer")
        assert problem(client.get("/tenants"), 503, "unavailable")
        with httpx2.Client(base_url=service.url, trust_env=False, verify=TLS) as anonymous:
            other = {"Authorization": f"Bearer {new_api_key()}"}
            assert problem(anonymous.get("/health/service", headers=other), 503, "unavailable")
    until(lambda: client.get("/datasets").status_code == 200, "requests to be answered again")
    assert service_checks(client)["database"]["ok"]
    assert client.get("/health/ready").json()["checks"][0]["ok"]


def test_process_that_has_reported_itself_is_ready_at_the_first_request(
    client: httpx2.Client, service: Service, postgres: TestServer
) -> None:
    async def required(processes: ProcessStore) -> list[bool]:
        return [each.required for each in await readiness(processes, Answers(), threading.Event())()]

    used, unused = ProcessStore(service.database), ProcessStore(service.database)
    used.report("new", ProcessReport(kind=ProcessKind.API))
    used.ended("new")
    with postgres.frozen():
        assert asyncio.run(required(used)) == [False]
        assert asyncio.run(required(unused)) == [True]
    until(lambda: client.get("/datasets").status_code == 200, "requests to be answered again")


def test_worst_check_is_the_state_of_the_service() -> None:
    def state(*severities: Severity) -> ServiceState:
        failed = {
            str(number): ServiceCheck(ok=False, severity=each) for number, each in enumerate(severities)
        }
        return ServiceHealth.of(failed | {"ok": ServiceCheck(ok=True, severity=Severity.CRITICAL)}).state

    assert state() is ServiceState.OK
    assert state(Severity.WARNING) is ServiceState.DEGRADED
    assert state(Severity.WARNING, Severity.CRITICAL) is ServiceState.FAILING


def known(name: str, kind: ProcessKind = ProcessKind.WORKER, **members: Any) -> KnownProcess:
    report = ProcessReport(kind=kind, host=name, **members)
    return KnownProcess(id=name, report=report, started_at=SINCE, seen_at=SINCE, silent_seconds=0)


def test_loop_that_stands_still_is_named_and_critical_only_if_no_worker_has_it_moving() -> None:
    still, moving = known("a", still={"reaper": SINCE}), known("b")
    api = known("c", ProcessKind.API, still={"reaper": SINCE})
    assert loops_check([moving]).ok
    one = loops_check([still, moving])
    assert (one.ok, one.severity) == (False, Severity.WARNING)
    assert one.detail == "worker a: the loop reaper stands still since 2026-11-22T08:00:00+00:00"
    assert loops_check([still, api]).severity is Severity.CRITICAL
    assert loops_check([api]).severity is Severity.WARNING


def test_process_that_does_not_start_is_named_with_what_it_lacks() -> None:
    assert processes_check([known("a")]).ok
    check = processes_check([known("a", faults={"derived": "No module named 'pandas'"}), known("b")])
    assert (check.ok, check.severity) == (False, Severity.WARNING)
    assert check.detail == "worker a: the process derived does not start: No module named 'pandas'"


def test_disk_is_a_warning_before_it_is_full_and_named_by_host() -> None:
    def disk(free: int) -> ServiceCheck:
        space = {"disk_free_bytes": free * MEBIBYTE, "disk_total_bytes": 10_000 * MEBIBYTE}
        space["disk_folder"] = "storage"
        other = known("other", disk_free_bytes=9 * 10**9, disk_total_bytes=10**10)
        return disk_check([known("host", **space), other, known("unknown")], 512 * MEBIBYTE)

    assert disk(2000).ok
    low = disk(900)
    assert (low.ok, low.severity) == (False, Severity.WARNING)
    assert low.detail == "host, disk of storage: 944 MB of 10.5 GB free; writes stop at 537 MB."
    full = disk(12)
    assert (full.ok, full.severity) == (False, Severity.CRITICAL)
    assert full.detail == (
        "host, disk of storage: 12.6 MB free; the minimum is 537 MB (HEADWATER_DISK_FREE_BYTES_MIN)."
    )


def test_spark_is_named_where_a_worker_has_no_executor_and_critical_if_none_has_one() -> None:
    assert spark_check({}).ok
    assert spark_check({"here": None, "cluster": 2}).ok
    one = spark_check({"here": None, "cluster": 0})
    assert (one.ok, one.severity) == (False, Severity.WARNING)
    assert one.detail == "Spark has no executor for the workers cluster"
    every = spark_check({"a": 0, "b": 0})
    assert (every.ok, every.severity) == (False, Severity.CRITICAL)


def test_probe_finds_a_missing_storage_and_leaves_no_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert StorageProbe(LocalStorage(root)).run() == "it is out of reach"
    root.mkdir()
    assert StorageProbe(LocalStorage(root)).run() == ""
    assert not list(root.iterdir())


def test_probe_does_not_wait_for_a_storage_that_hangs(tmp_path: Path) -> None:
    released = Event()

    class Hanging(LocalStorage):
        def create(self, path: str, *, durable: bool = True):
            released.wait(60)
            return super().create(path, durable=durable)

    probe = StorageProbe(Hanging(tmp_path))
    for _ in range(2):
        assert probe.run().startswith("it has not answered for")
    released.set()
