"""Exports: their runs, schedules and ends, over HTTP."""

import pytest
from sqlalchemy import text

from app.files.storage import open_storage
from app.services.reap import Reap
from app.services.retention import Retain
from app.store.references import ReferenceStore
from app.store.retention import RetentionStore
from tests.support.exports import contents, exported, run_of, stored, write
from tests.support.http import problem, upsert
from workers.engine import export_handle

ONCE = {"query": "changes", "format": "ndjson"}
EVERY_MINUTE = {**ONCE, "schedule": {"every_seconds": 60}}


@pytest.fixture
def export(client, orders, service):
    """The path of an export with a schedule that has run once, over the changes [0, 1)."""
    write(client, service, orders, upsert({"id": 1, "note": "a"}))
    path = client.post(f"{orders}/exports", json=EVERY_MINUTE).headers["location"]
    service.work()
    assert client.get(path).json()["offset"] == 1
    return path


def pass_time(service, export):
    """Makes the interval of an export over, as if its last run had begun an hour ago."""
    export_id = export.rsplit("/", 1)[1]
    tenant_id = owner(service, export_id)
    with service.database.tenant(tenant_id) as connection:
        connection.execute(text("UPDATE jobs SET created_at = created_at - interval '1 hour'"))
        connection.execute(
            text("UPDATE consumers SET wake_at = now() WHERE name = :name"), {"name": f"export:{export_id}"}
        )


def owner(service, export_id):
    for tenant_id in ReferenceStore(service.database).tenants():
        with service.database.tenant(tenant_id) as connection:
            found = connection.execute(text("SELECT 1 FROM exports WHERE id = :id"), {"id": export_id})
            if found.one_or_none():
                return tenant_id
    raise AssertionError(f"no tenant has export {export_id}")


def patched(client, export, change, status=200):
    headers = {"If-Match": client.get(export).headers["etag"]}
    answer = client.patch(export, json=change, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def test_an_export_runs_once_and_ends(client, orders, feed, service):
    answer = client.post(f"{orders}/exports", json={**ONCE, "name": "all of it"})
    assert answer.status_code == 202
    begun = answer.json()
    assert answer.headers["location"] == begun["links"]["self"]
    assert (begun["state"], begun["offset"], begun["form"], begun["name"]) == (
        "active",
        0,
        "two_event",
        "all of it",
    )
    assert [(run["number"], run["state"], run["since"], run["until"]) for run in begun["runs"]] == [
        (1, "queued", 0, 4)
    ]
    # What is written later is not in the range.
    client.post(f"{orders}/writes", json=upsert({"id": 3}))
    service.work()
    ended = client.get(answer.headers["location"]).json()
    assert (ended["state"], ended["offset"], ended["error"]) == ("ended", 4, None)
    (run,) = ended["runs"]
    assert (run["state"], run["next_since"], run["rows"], run["files"]) == ("succeeded", 4, 4, 1)
    job = client.get(run["links"]["job"]).json()
    assert (job["kind"], job["result"]["rows"], job["operation"]) == ("export", 4, None)
    # It has let go of the feed.
    assert client.get(f"{orders}/consumers").json()["items"] == []
    assert client.get(f"{orders}/exports").json()["items"] == [ended]


def test_a_manifest_tells_what_was_written(client, orders, feed, service):
    run = exported(client, service, orders, query="changes", format="ndjson", form="retract")
    assert run["offsets"] == {"since": 0, "next_since": 4}
    assert run["versions"] == {"first": 1, "last": 2}
    assert (run["query"], run["form"], run["format"], run["rows"]) == ("changes", "retract", "ndjson", 4)
    (file,) = run["files"]
    assert (file["name"], file["rows"]) == ("part-00000-00000.ndjson", 4)
    assert (file["first_offset"], file["next_offset"]) == (0, 4)
    assert file["size_bytes"] == len(contents(client, run)[0])
    beside = client.get(run["links"]["manifest"]).json()
    links = file.pop("links")
    assert beside["files"] == [file]
    assert links["self"].endswith("/files/part-00000-00000.ndjson")
    for name in ("export_id", "number", "offsets", "versions", "schema", "rows", "created_at"):
        assert beside[name] == run[name]
    assert beside["dataset_name"] == "orders"


def test_an_export_without_a_schedule_goes_on_when_it_is_asked_to(client, orders, feed, service):
    path = client.post(f"{orders}/exports", json=ONCE).headers["location"]
    service.work()
    write(client, service, orders, upsert({"id": 5}))
    key = {"Idempotency-Key": "again"}
    first, second = (client.post(f"{path}/runs", headers=key) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.headers["location"] == second.headers["location"] == f"{path}/runs/2"
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    service.work()
    run = run_of(client, path, 2)
    assert run["offsets"] == {"since": 4, "next_since": 5}
    # The same range again is the same run; where there is nothing new, a run has nothing.
    empty = client.post(f"{path}/runs").json()
    service.work()
    assert (empty["number"], empty["since"], empty["until"]) == (3, 5, 5)
    assert run_of(client, path, 3)["files"] == []
    assert client.post(f"{path}/runs").json()["number"] == 3
    numbers = []
    page = {"next_page_token": None}
    while page is not None:
        token = {} if page["next_page_token"] is None else {"page_token": page["next_page_token"]}
        page = client.get(f"{path}/runs", params={"page_size": 2, **token}).json()
        numbers += [run["number"] for run in page["items"]]
        page = page if page["next_page_token"] else None
    assert numbers == [3, 2, 1]


def test_a_run_under_way_is_the_answer_to_who_asks_for_one(client, orders, feed, service):
    path = client.post(f"{orders}/exports", json=ONCE).headers["location"]
    again = client.post(f"{path}/runs")
    assert (again.json()["number"], again.json()["state"]) == (1, "queued")
    service.work()
    assert len(client.get(path).json()["runs"]) == 1


def test_a_schedule_goes_on_where_it_stopped(client, orders, export, service):
    pass_time(service, export)
    service.work()
    assert len(client.get(export).json()["runs"]) == 1, "there was nothing to write"
    write(client, service, orders, upsert({"id": 1, "note": "b"}))
    service.work()
    state = client.get(export).json()
    assert [(run["since"], run["next_since"]) for run in state["runs"]] == [(1, 3), (0, 1)]
    # Its time has not come again.
    write(client, service, orders, upsert({"id": 2}))
    assert client.get(export).json()["offset"] == 3
    pass_time(service, export)
    service.work()
    assert client.get(export).json()["offset"] == 4
    assert client.get(export).json()["state"] == "active"


def test_one_with_a_schedule_waits_for_the_first_change(client, orders, service):
    path = client.post(f"{orders}/exports", json={**EVERY_MINUTE, "since": "now"}).headers["location"]
    service.work()
    assert client.get(path).json()["runs"] == []
    write(client, service, orders, upsert({"id": 1}))
    service.work()
    assert client.get(path).json()["offset"] == 1


def test_a_paused_export_waits(client, orders, export, service):
    answer = patched(client, export, {"state": "paused"})
    assert answer.json()["state"] == "paused"
    write(client, service, orders, upsert({"id": 2}))
    pass_time(service, export)
    service.work()
    assert client.get(export).json()["offset"] == 1
    patched(client, export, {"state": "active"})
    service.work()
    assert client.get(export).json()["offset"] == 2


def test_a_change_is_for_one_revision(client, export):
    problem(client.patch(export, json={"state": "paused"}), 428, "precondition-required")
    stale = client.get(export).headers["etag"]
    patched(client, export, {"schedule": {"every_seconds": 3600}})
    problem(
        client.patch(export, json={"state": "paused"}, headers={"If-Match": stale}),
        412,
        "precondition-failed",
    )
    assert client.get(export).json()["schedule"] == {"every_seconds": 3600}
    headers = {"If-Match": client.get(export).headers["etag"]}
    members = problem(client.patch(export, json={"state": "ended"}, headers=headers), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == "/state"


def test_without_its_schedule_an_export_has_ended(client, orders, export, service):
    patched(client, export, {"schedule": None})
    ended = client.get(export).json()
    assert (ended["state"], ended["offset"]) == ("ended", 1)
    headers = {"If-Match": client.get(export).headers["etag"]}
    change = {"schedule": {"every_seconds": 60}}
    members = problem(client.patch(export, json=change, headers=headers), 409, "export-ended")
    assert members["offset"] == 1
    write(client, service, orders, upsert({"id": 2}))
    patched(client, export, {"state": "active", **change})
    pass_time(service, export)
    service.work()
    assert client.get(export).json()["offset"] == 2


def test_an_export_ends_at_its_end(client, orders, service):
    path = client.post(f"{orders}/exports", json={**EVERY_MINUTE, "until": 2}).headers["location"]
    for number in range(3):
        write(client, service, orders, upsert({"id": number}))
        pass_time(service, path)
        service.work()
    ended = client.get(path).json()
    assert (ended["state"], ended["offset"]) == ("ended", 2)
    assert sum(run["rows"] for run in ended["runs"]) == 2
    assert problem(client.post(f"{path}/runs"), 409, "export-ended")["until"] == 2


def test_a_run_that_died_is_made_again_under_other_names(client, orders, feed, service, monkeypatch):
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
    # What the first attempt wrote is nobody's.
    reap(service)
    assert stored(service, path) == [
        (folders[1], "manifest.json"),
        (folders[1], "part-00000-00000.ndjson"),
    ]
    assert contents(client, run_of(client, path, 1))


def reap(service):
    reaper = Reap(
        references=ReferenceStore(service.database),
        storage=open_storage(service.settings.storage_uri),
        grace_seconds=0,
        upload_seconds_max=86_400,
    )
    return reaper.run()


def test_a_late_attempt_changes_nothing(client, orders, feed, service, monkeypatch):
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
    # Whoever asks for a run then gets this one again, with another job.
    monkeypatch.undo()
    again = client.post(f"{path}/runs").json()
    assert (again["number"], again["state"]) == (1, "queued")
    service.work()
    assert run_of(client, path, 1)["rows"] == 4


def test_a_failed_run_is_shown_and_tried_again(client, orders, export, service):
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


def test_deleting_an_export_takes_its_files_along(client, orders, export, service):
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


def test_an_export_keeps_the_feed_until_it_has_written_it(client, service):
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
    retain = Retain(feeds=RetentionStore(service.database), follower_lag_seconds=3600)
    retain.run()
    assert client.get(f"{path}/changes").json()["earliest"] == 0
    service.work()
    retain.run()
    assert client.get(f"{path}/changes", params={"since": "earliest"}).json()["earliest"] == 2
    problem(client.post(f"{path}/exports", json={**ONCE, "since": 0}), 410, "offset-expired")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"query": "all"}, "/query"),
        ({"format": "xlsx"}, "/format"),
        ({"query": "incremental", "form": "upsert"}, "/form"),
        ({"columns": ["nope"]}, "/columns"),
        ({"columns": []}, "/columns"),
        ({"partitions": ["x=1"]}, "/partitions"),
        ({"since": -1}, "/since"),
        ({"since": 1, "until": 0}, "/until"),
        ({"schedule": {"every_seconds": 9}}, "/schedule/every_seconds"),
        ({"target_bytes": 1}, "/target_bytes"),
        ({"name": ""}, "/name"),
        ({"until_": 1}, "/until_"),
    ],
)
def test_what_cannot_be_exported_is_refused(client, orders, feed, change, pointer):
    members = problem(client.post(f"{orders}/exports", json={**ONCE, **change}), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == pointer


def test_positions_beyond_the_head_and_filters_that_do_not_fit_are_refused(client, orders):
    problem(client.post(f"{orders}/exports", json={**ONCE, "since": 1}), 409, "offset-ahead")
    problem(client.post(f"{orders}/exports", json={**ONCE, "where": "nope = 1"}), 400, "invalid-filter")
    assert client.get(f"{orders}/exports").json()["items"] == []


def test_a_dataset_without_a_feed_has_nothing_to_export(client):
    body = {
        "name": "silent",
        "schema": {"fields": [{"name": "id", "type": "int64"}]},
        "record_key": ["id"],
        "changelog": {"producer": "none"},
        "table_type": "merge_on_read",
    }
    path = client.post("/datasets", json=body).headers["location"]
    problem(client.post(f"{path}/exports", json=ONCE), 422, "no-feed")


def test_another_tenants_exports_are_not_there(new_client, export):
    other = new_client()
    for method, path in (
        ("GET", export),
        ("DELETE", export),
        ("POST", f"{export}/runs"),
        ("GET", f"{export}/runs"),
    ):
        problem(other.request(method, path), 404, "not-found")
    for path in (f"{export}/runs/1", f"{export}/runs/1/files/manifest.json"):
        problem(other.get(path), 404, "not-found")


@pytest.mark.parametrize("export_id", ["nothing", "01a1fc4e-fa09-7f57-bc96-fdc731ce19a5"])
def test_an_unknown_export_is_not_there(client, export_id):
    problem(client.get(f"/exports/{export_id}"), 404, "not-found")
    problem(client.get(f"/exports/{export_id}/runs/1/files/x"), 404, "not-found")


def test_exports_of_an_ended_dataset_are_not_there(client, orders, export, service):
    write(client, service, orders, upsert({"id": 2}))
    pass_time(service, export)
    assert client.delete(orders).status_code == 204
    # Nothing of it is due any more.
    service.work()
    problem(client.get(export), 404, "not-found")
    problem(client.post(f"{export}/runs"), 404, "not-found")
