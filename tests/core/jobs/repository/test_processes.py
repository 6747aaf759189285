"""Signs of life: a process lives while it reports."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import text

from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.service.report_process import ReportProcess
from app.core.jobs.values import ProcessKind, ProcessReport
from app.infra.files.probe import DiskSpace
from tests.support.store_fixtures import Stores

WORKER = ProcessReport(kind=ProcessKind.WORKER)
API = ProcessReport(kind=ProcessKind.API)


def names(processes: ProcessStore, seconds: float = 60) -> set[str]:
    return {each.id for each in processes.known(seconds)}


def test_process_is_known_from_its_report_until_it_ends_or_falls_silent(stores: Stores) -> None:
    processes = ProcessStore(stores.database)
    assert names(processes) == set()
    for name in ("one", "two", "one"):
        processes.report(name, WORKER)
    processes.report("api", API)
    assert names(processes) == {"one", "two", "api"}
    time.sleep(1.1)
    processes.report("two", WORKER)
    assert names(processes, 1) == {"two"}
    assert sorted(processes.silent(1)) == ["api", "one"]
    for name in ("two", "two", "api"):
        processes.ended(name)
    assert names(processes) == {"one"}


def test_process_reports_what_it_is_and_how_it_is_now(stores: Stores, tmp_path: Path) -> None:
    store = ProcessStore(stores.database)
    report = ReportProcess(
        processes=store,
        id="reporter",
        kind=ProcessKind.WORKER,
        space=DiskSpace({"data": tmp_path, "storage": tmp_path}),
    )
    since = datetime(2026, 11, 22, 8, tzinfo=UTC)
    report.run({"reaper": since}, 0)
    report.run({}, 2, {"derived": "No module named 'pandas'"})
    [first] = [each for each in store.known(60) if each.id == "reporter"]
    assert (first.report.pid, first.report.version, first.report.executors) == (os.getpid(), "0.1.0", 2)
    assert (first.report.still, first.report.faults) == ({}, {"derived": "No module named 'pandas'"})
    assert first.report.disk_folder == "data and storage"
    assert first.report.disk_free_bytes is not None
    assert first.report.disk_total_bytes is not None
    assert 0 < first.report.disk_free_bytes <= first.report.disk_total_bytes
    assert first.report.resident_bytes is not None
    assert first.report.resident_bytes > 10 * 1024 * 1024
    report.run({"reaper": since})
    [second] = [each for each in store.known(60) if each.id == "reporter"]
    assert (second.report.still, second.report.executors) == ({"reaper": since}, None)
    assert second.started_at == first.started_at
    assert second.seen_at > first.seen_at


def test_row_of_a_killed_process_is_deleted_by_another_after_ten_minutes(stores: Stores) -> None:
    processes = ProcessStore(stores.database)
    for name in ("killed", "busy"):
        processes.report(name, WORKER)
    with stores.database.relay() as connection:
        ages = text("UPDATE workers SET polled_at = polled_at - CAST(:age AS interval) WHERE id = :id")
        connection.execute(ages, [{"id": "killed", "age": "11 min"}, {"id": "busy", "age": "9 min"}])
    processes.report("new", API)
    with stores.database.relay() as connection:
        left = set(connection.execute(text("SELECT id FROM workers")).scalars())
    assert left & {"killed", "busy", "new"} == {"busy", "new"}
