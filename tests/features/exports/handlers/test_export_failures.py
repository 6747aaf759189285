"""Exports whose runs die, fail, come too late or are not wanted any more."""

import pytest

from app.core.idempotency.repository import ReplyStore
from app.features.retention.repository.feed import RetentionStore
from app.features.retention.service.feed import Retain
from app.infra.files.storage import LocalStorage
from tests.support.expired_rows import expire_rows
from tests.support.exports import EVERY_MINUTE, ONCE, contents, pass_time, reap, run_of, stored, write
from tests.support.http import problem, upsert
from tests.support.shares import share
from workers.engine.read import export_handle


@share(2)
def test_run_of_a_dead_worker_is_repeated_under_other_names(client, orders, feed, service, monkeypatch):
    path = client.post(f"{orders}/exports", json=ONCE).headers["location"]
    written = export_handle.export

    def die(*arguments):
        written(*arguments)
        raise RuntimeError("the worker is gone")

    monkeypatch.setattr("workers.engine.tasks.export", die)
    with pytest.raises(RuntimeError):
        service.work()
    monkeypatch.undo()
    service.work()
    assert client.get(path).json()["runs"][0]["rows"] == 4
    names = stored(service, path)
    folders = sorted({folder for folder, _ in names})
    assert [folder.rsplit("-", 1)[1] for folder in folders] == ["1", "2"]
    # What the first attempt wrote belongs to no job.
    reap(service)
    assert stored(service, path) == [
        (folders[1], "manifest.json"),
        (folders[1], "part-00000-00000.ndjson"),
    ]
    assert contents(client, run_of(client, path, 1))


def test_late_attempt_changes_nothing(client, orders, feed, service, monkeypatch):
    path = client.post(f"{orders}/exports", json=ONCE).headers["location"]
    written = export_handle.export

    def lose_the_job(*arguments):
        job = client.get(path).json()["runs"][0]["links"]["job"]
        assert client.post(f"{job}/cancel").status_code == 200
        return written(*arguments)

    monkeypatch.setattr("workers.engine.tasks.export", lose_the_job)
    service.work()
    state = client.get(path).json()
    assert (state["state"], state["offset"], state["runs"][0]["state"]) == ("active", 0, "cancelled")
    assert client.get(f"{path}/runs/1").json()["files"] == []
    # Who requests a run then gets this one again, with another job.
    monkeypatch.undo()
    again = client.post(f"{path}/runs").json()
    assert (again["number"], again["state"]) == (1, "queued")
    service.work()
    assert run_of(client, path, 1)["rows"] == 4


def test_failed_run_is_reported_and_retried(client, orders, export, service):
    write(client, service, orders, upsert({"id": 2}))
    root = service.settings.data_dir / "storage"
    dataset = client.get(orders).json()["id"]
    (damaged,) = [
        file
        for file in root.glob(f"*/{dataset}/changes/**/*.parquet")
        if file.stat().st_mtime_ns
        == max(f.stat().st_mtime_ns for f in root.glob(f"*/{dataset}/changes/**/*.parquet"))
    ]
    sound = damaged.read_bytes()
    damaged.write_bytes(sound[:-1])
    pass_time(service, export)
    service.work()
    state = client.get(export).json()
    assert state["error"]["type"] == "/problems/corrupt-file"
    assert (state["state"], state["offset"], state["runs"][0]["state"]) == ("active", 1, "failed")
    write(client, service, orders, upsert({"id": 3}))
    damaged.write_bytes(sound)
    pass_time(service, export)
    service.work()
    state = client.get(export).json()
    # The same range, though more has come since.
    assert [(run["number"], run["since"], run["until"], run["state"]) for run in state["runs"]] == [
        (2, 1, 2, "succeeded"),
        (1, 0, 1, "succeeded"),
    ]
    assert state["error"] is None


@share(2)
def test_deleted_export_loses_its_files(client, orders, export, service):
    run = run_of(client, export, 1)
    client.post(f"{orders}/writes", json=upsert({"id": 2}))
    service.work()
    job = client.post(f"{export}/runs").json()["links"]["job"]
    assert client.delete(export).status_code == 204
    problem(client.get(export), 404, "not-found")
    problem(client.get(run["files"][0]["links"]["self"]), 404, "not-found")
    assert client.get(job).json()["state"] == "cancelled"
    assert client.get(f"{orders}/consumers").json()["items"] == []
    assert stored(service, export)
    reap(service)
    assert not stored(service, export)


@share(3)
def test_feed_is_retained_until_the_export_has_written_it(client, service, tmp_path):
    body = {
        "name": "short",
        "record_key": ["id"],
        "schema": {"fields": [{"name": "id", "type": "int64"}]},
        "changelog": {"retention": {"changes": 1}},
    }
    path = client.post("/datasets", json=body).headers["location"]
    for number in range(3):
        write(client, service, path, upsert({"id": number}))
    export = client.post(f"{path}/exports", json=EVERY_MINUTE).headers["location"]
    assert [each["name"] for each in client.get(f"{path}/consumers").json()["items"]] == [
        f"export:{export.rsplit('/', 1)[1]}"
    ]
    retain = Retain(
        feeds=RetentionStore(service.database),
        keys=ReplyStore(service.database),
        rows=expire_rows(service.database, LocalStorage(tmp_path), job_keep_seconds=3600),
        follower_lag_seconds=3600,
    )
    retain.run()
    assert client.get(f"{path}/changes").json()["earliest"] == 0
    service.work()
    retain.run()
    assert client.get(f"{path}/changes", params={"since": "earliest"}).json()["earliest"] == 2
    problem(client.post(f"{path}/exports", json={**ONCE, "since": 0}), 410, "offset-expired")
