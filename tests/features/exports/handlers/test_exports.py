"""Exports: their runs, schedules and ends, over HTTP."""

import pytest

from tests.support.exports import EVERY_MINUTE, ONCE, contents, exported, pass_time, run_of, write
from tests.support.http import ORDERS, problem, upsert


def patched(client, export, change, status=200):
    headers = {"If-Match": client.get(export).headers["etag"]}
    answer = client.patch(export, json=change, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def test_export_without_a_schedule_runs_once_and_ends(client, orders, feed, service):
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
    assert (run["state"], run["next_since"], run["rows"], run["file_count"]) == ("succeeded", 4, 4, 1)
    job = client.get(run["links"]["job"]).json()
    assert (job["kind"], job["result"]["rows"], job["operation"]) == ("export", 4, None)
    # It has let go of the feed.
    assert client.get(f"{orders}/consumers").json()["items"] == []
    assert client.get(f"{orders}/exports").json()["items"] == [ended]


def test_manifest_describes_the_run(client, orders, feed, service):
    run = exported(client, service, orders, query="changes", format="ndjson", form="retract")
    assert run["offsets"] == {"since": 0, "next_since": 4}
    assert run["versions"] == {"first": 1, "last": 2}
    assert (run["query"], run["form"], run["format"], run["rows"]) == ("changes", "retract", "ndjson", 4)
    assert (run["file_count"], run["dataset"]["name"]) == (1, "orders")
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


def test_an_export_starts_at_a_version_or_a_time(client, orders, feed):
    times = {change["version"]: change["system_time"] for change in client.get(feed).json()["changes"]}
    for start in ({"since_version": 2}, {"since_time": times[2]}, {"since": "2"}):
        answer = client.post(f"{orders}/exports", json={**ONCE, **start})
        assert (answer.status_code, answer.json()["since"]) == (202, 2), start
        assert answer.json()["dataset"] == {"id": orders.rsplit("/", 1)[1], "name": "orders"}
    both = client.post(f"{orders}/exports", json={**ONCE, "since": 0, "since_version": 2})
    assert problem(both, 400, "invalid-request")["errors"][0]["pointer"] == "/since_version"
    ahead = client.post(f"{orders}/exports", json={**ONCE, "since_version": 9})
    problem(ahead, 409, "offset-ahead")


def test_an_export_is_created_once_for_a_key(client, orders, feed):
    headers = {"Idempotency-Key": "nightly"}
    first, second = (client.post(f"{orders}/exports", json=ONCE, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert second.headers["idempotency-replayed"] == "true"
    assert second.json() == first.json()
    assert second.headers["location"] == first.headers["location"]
    assert len(client.get(f"{orders}/exports").json()["items"]) == 1
    other = client.post(f"{orders}/exports", json={**ONCE, "name": "other"}, headers=headers)
    problem(other, 422, "idempotency-mismatch")


def test_export_without_a_schedule_continues_on_request(client, orders, feed, service):
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


def test_run_request_returns_the_active_run(client, orders, feed, service):
    path = client.post(f"{orders}/exports", json=ONCE).headers["location"]
    again = client.post(f"{path}/runs")
    assert (again.json()["number"], again.json()["state"]) == (1, "queued")
    service.work()
    assert len(client.get(path).json()["runs"]) == 1


def test_scheduled_export_continues_at_its_position(client, orders, export, service):
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


def test_scheduled_export_from_now_waits_for_the_first_change(client, orders, service):
    path = client.post(f"{orders}/exports", json={**EVERY_MINUTE, "since": "now"}).headers["location"]
    service.work()
    assert client.get(path).json()["runs"] == []
    write(client, service, orders, upsert({"id": 1}))
    service.work()
    assert client.get(path).json()["offset"] == 1


def test_paused_export_does_not_run(client, orders, export, service):
    answer = patched(client, export, {"state": "paused"})
    assert answer.json()["state"] == "paused"
    write(client, service, orders, upsert({"id": 2}))
    pass_time(service, export)
    service.work()
    assert client.get(export).json()["offset"] == 1
    patched(client, export, {"state": "active"})
    service.work()
    assert client.get(export).json()["offset"] == 2


def test_patch_requires_the_current_revision(client, export):
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
    empty = problem(client.patch(export, json={}, headers=headers), 400, "invalid-request")
    assert empty["errors"][0]["detail"] == "expected at least one of state, schedule"
    members = problem(client.patch(export, json={"state": "ended"}, headers=headers), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == "/state"


def test_export_ends_when_its_schedule_is_removed(client, orders, export, service):
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


def test_scheduled_export_ends_at_until(client, orders, service):
    path = client.post(f"{orders}/exports", json={**EVERY_MINUTE, "until": 2}).headers["location"]
    for number in range(3):
        write(client, service, orders, upsert({"id": number}))
        pass_time(service, path)
        service.work()
    ended = client.get(path).json()
    assert (ended["state"], ended["offset"]) == ("ended", 2)
    assert sum(run["rows"] for run in ended["runs"]) == 2
    assert problem(client.post(f"{path}/runs"), 409, "export-ended")["until"] == 2


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
        ({"schedule": {}}, "/schedule"),
        ({"schedule": {"every_seconds": 60, "cron": "0 6 * * *"}}, "/schedule"),
        ({"schedule": {"every_seconds": 60, "zone": "UTC"}}, "/schedule/zone"),
        ({"schedule": {"cron": "0 6 * * *", "zone": "Europe/Belin"}}, "/schedule/zone"),
        ({"schedule": {"cron": "0 6 * * * *"}}, "/schedule/cron"),
        ({"schedule": {"cron": "0 25 * * *"}}, "/schedule/cron"),
        ({"schedule": {"cron": "0 6 31 2 *"}}, "/schedule/cron"),
        ({"schedule": {"cron": f"{'1,' * 200}1 6 * * *"}}, "/schedule/cron"),
        ({"version": 1}, "/version"),
        ({"query": "snapshot", "since": 0}, "/since"),
        ({"query": "snapshot", "max_lag": {"changes": 1}}, "/max_lag"),
        ({"query": "snapshot", "version": 9}, "/version"),
        ({"query": "snapshot", "version": 1, "schedule": {"every_seconds": 60}}, "/version"),
        ({"query": "snapshot", "form": "upsert"}, "/form"),
        ({"target_bytes": 1}, "/target_bytes"),
        ({"name": ""}, "/name"),
        ({"until_": 1}, "/until_"),
    ],
)
def test_invalid_export_is_refused(client, orders, feed, change, pointer):
    members = problem(client.post(f"{orders}/exports", json={**ONCE, **change}), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == pointer


def test_position_beyond_the_head_and_invalid_filter_are_refused(client, orders):
    problem(client.post(f"{orders}/exports", json={**ONCE, "since": 1}), 409, "offset-ahead")
    problem(client.post(f"{orders}/exports", json={**ONCE, "where": "nope = 1"}), 400, "invalid-filter")
    assert client.get(f"{orders}/exports").json()["items"] == []


def test_dataset_without_a_feed_refuses_exports(client):
    body = {
        "name": "silent",
        "schema": {"fields": [{"name": "id", "type": "int64"}]},
        "record_key": ["id"],
        "changelog": {"producer": "none"},
        "table_type": "merge_on_read",
    }
    path = client.post("/datasets", json=body).headers["location"]
    problem(client.post(f"{path}/exports", json=ONCE), 422, "no-feed")


def test_exports_of_another_tenant_are_not_found(new_client, export):
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
def test_unknown_export_is_not_found(client, export_id):
    problem(client.get(f"/exports/{export_id}"), 404, "not-found")
    problem(client.get(f"/exports/{export_id}/runs/1/files/x"), 404, "not-found")


def test_exports_of_a_deleted_dataset_are_not_found(client, orders, export, service):
    write(client, service, orders, upsert({"id": 2}))
    pass_time(service, export)
    assert client.delete(orders).status_code == 204
    # Nothing of it is due any more.
    service.work()
    problem(client.get(export), 404, "not-found")
    problem(client.post(f"{export}/runs"), 404, "not-found")


def test_exports_of_all_datasets_are_listed_by_state(client, orders, feed, service):
    client.post("/datasets", json=ORDERS | {"name": "others"})
    once = client.post(f"{orders}/exports", json=ONCE).json()["id"]
    service.work()
    hourly = {**ONCE, "schedule": {"every_seconds": 3_600}}
    active, other = (
        client.post(f"/datasets/{name}/exports", json=hourly).json()["id"] for name in ("orders", "others")
    )
    patched(client, f"/exports/{other}", {"state": "paused"})

    def listed(**options):
        answer = client.get("/exports", params=options)
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()["items"]]

    assert listed() == [other, active, once]
    assert [listed(state=state) for state in ("active", "paused", "ended")] == [[active], [other], [once]]
    assert listed(dataset="orders") == [active, once]
    assert listed(dataset="orders", state="ended") == [once]
    first = client.get("/exports", params={"page_size": 2}).json()
    assert [each["id"] for each in first["items"]] == [other, active]
    assert listed(page_size=2, page_token=first["next_page_token"]) == [once]
    problem(
        client.get("/exports", params={"state": "ended", "page_token": first["next_page_token"]}),
        *(400, "invalid-request"),
    )
    problem(client.get("/exports", params={"dataset": "lost"}), 404, "not-found")
    problem(client.get("/exports", params={"state": "gone"}), 400, "invalid-request")
    members = {"name": "narrow", "scopes": ["read"], "grants": [{"datasets": "others"}]}
    key = client.post("/keys", json=members).json()["api_key"]
    answer = client.get("/exports", headers={"Authorization": f"Bearer {key}"})
    assert [each["id"] for each in answer.json()["items"]] == [other]
