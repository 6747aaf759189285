"""Exports of whole tables, and schedules at times of day, over HTTP."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from app.access.tenants.values import Grant, KeyScope
from tests.support.exports import contents, exported, owner, run_of, write
from tests.support.http import problem, upsert
from tests.support.service import Service
from tests.support.webhooks import tenant_of

SNAPSHOT: dict[str, Any] = {"query": "snapshot", "format": "ndjson"}
# A day ahead, so that it is never due by itself.
DAILY: dict[str, Any] = {"cron": "0 6 * * *", "zone": "Europe/Berlin"}


def rows_of(client: httpx2.Client, run: dict[str, Any]) -> list[dict[str, Any]]:
    lines = [line for content in contents(client, run) for line in content.splitlines()]
    return sorted((json.loads(line) for line in lines), key=lambda row: row["id"])


def pass_days(service: Service, export: str, days: int = 1) -> None:
    """Makes the export as if it was last planned some days ago."""
    export_id = export.rsplit("/", 1)[1]
    with service.database.tenant(owner(service, export_id)) as connection:
        back = f"interval '{days} days'"
        connection.execute(
            text(
                f"UPDATE exports SET planned_at = now() - {back}, created_at = created_at - {back} WHERE id = :id"
            ),
            {"id": export_id},
        )
        connection.execute(
            text("UPDATE consumers SET wake_at = now() WHERE name = :name"), {"name": f"export:{export_id}"}
        )


def test_snapshot_has_all_rows_of_the_latest_version(
    client: httpx2.Client, orders: str, feed: str, service: Service
) -> None:
    run = exported(client, service, orders, **SNAPSHOT, columns=["id", "note"])
    assert rows_of(client, run) == [{"id": 1, "note": "c"}, {"id": 2, "note": "b"}]
    assert (run["version"], run["offsets"], run["versions"]) == (2, {"since": 0, "next_since": 4}, None)
    manifest = client.get(run["links"]["manifest"]).json()
    assert (manifest["version"], manifest["query"], manifest["rows"]) == (2, "snapshot", 2)
    export = client.get(run["links"]["export"]).json()
    assert (export["state"], export["version"], export["offset"]) == ("ended", None, 4)
    # The changes after it continue where it ends.
    write(client, service, orders, upsert({"id": 3, "note": "d"}))
    page = client.get(feed, params={"since": run["offsets"]["next_since"]}).json()
    assert [change["row"]["id"] for change in page["changes"]] == [3]
    # Again on request, the latest version; and that once.
    again = client.post(f"{run['links']['export']}/runs").json()
    assert (again["number"], again["version"], again["until"]) == (2, 3, 5)
    service.work()
    assert [row["id"] for row in rows_of(client, run_of(client, run["links"]["export"], 2))] == [1, 2, 3]
    assert client.post(f"{run['links']['export']}/runs").json()["number"] == 2
    assert client.get(run["links"]["export"]).json()["state"] == "ended"
    assert client.get(f"{orders}/consumers").json()["items"] == []


def test_snapshot_has_no_position_before_its_first_run(
    client: httpx2.Client, orders: str, feed: str, service: Service
) -> None:
    assert client.get(feed).json()["changes"]
    body = SNAPSHOT | {"schedule": {"cron": "0 6 1 1 *"}}
    path = client.post(f"{orders}/exports", json=body).headers["location"]
    assert client.get(path).json()["offset"] is None
    [edge] = client.get("/lineage").json()["edges"]
    assert edge["lag"] is None
    run = client.post(f"{path}/runs").json()
    client.post(f"/jobs/{run['job_id']}/cancel")
    assert client.get(path).json()["offset"] is None
    client.post(f"{path}/runs")
    service.work()
    assert client.get(path).json()["offset"] == 4
    [edge] = client.get("/lineage").json()["edges"]
    assert edge["lag"] is None


@pytest.mark.parametrize("format_", ["csv", "parquet", "arrow"])
def test_snapshot_equals_the_table_in_every_format(
    client: httpx2.Client, orders: str, feed: str, service: Service, format_: str
) -> None:
    run = exported(client, service, orders, query="snapshot", format=format_, where="id = 1", meta=True)
    read = client.post(
        f"{orders}/reads", json={"format": format_, "where": "id = 1", "meta": True, "disposition": "files"}
    ).headers["location"]
    service.work()
    result = client.get(f"{read}/result").json()
    [expected] = [client.get(file["links"]["self"]).content for file in result["files"]]
    assert contents(client, run) == [expected]


def test_snapshot_of_an_earlier_version_has_its_rows_and_its_schema(
    client: httpx2.Client, orders: str, feed: str, service: Service
) -> None:
    etag = client.get(orders).headers["etag"]
    change = {"changes": [{"kind": "rename", "name": "note", "to": "remark"}]}
    assert client.patch(orders, json=change, headers={"If-Match": etag}).status_code == 200
    run = exported(client, service, orders, **SNAPSHOT, version=1, where="note IS NOT NULL")
    assert rows_of(client, run) == [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]
    assert (run["version"], run["offsets"]["next_since"]) == (1, 2)
    client.post(f"{orders}/tags", json={"name": "first", "version": 1})
    service.work()
    named = exported(client, service, orders, **SNAPSHOT, tag="first")
    assert named["version"] == 1
    problem(client.post(f"{orders}/exports", json={**SNAPSHOT, "tag": "none"}), 404, "not-found")
    both = client.post(f"{orders}/exports", json={**SNAPSHOT, "tag": "first", "version": 1})
    problem(both, 400, "invalid-request")


def test_dataset_without_a_feed_is_exported_whole(client: httpx2.Client, service: Service) -> None:
    body = {
        "name": "silent", "schema": {"fields": [{"name": "id", "type": "int64"}]}, "record_key": ["id"],
        "changelog": {"producer": "none"}, "table_type": "merge_on_read",
    }  # fmt: skip
    path = client.post("/datasets", json=body).headers["location"]
    export = client.post(f"{path}/exports", json={**SNAPSHOT, "schedule": {"every_seconds": 10}}).headers[
        "location"
    ]
    service.work()
    assert client.get(export).json()["runs"] == []
    for number in (1, 2):
        write(client, service, path, upsert({"id": number}))
        client.post(f"{export}/runs")
        service.work()
        run = run_of(client, export, number)
        assert [row["id"] for row in rows_of(client, run)] == list(range(1, number + 1))
    assert [run["version"] for run in client.get(export).json()["runs"]] == [2, 1]


def test_rows_and_values_that_the_maker_does_not_see_are_left_out(
    client: httpx2.Client, orders: str, feed: str, service: Service
) -> None:
    grant = Grant(datasets="orders", scopes=(KeyScope.READ,), where="id < 2", mask=("note",))
    key = service.tenants.make_key(tenant_of(client, service), (KeyScope.READ,), grants=(grant,)).api_key
    with service.client(key) as part:
        run = exported(part, service, orders, **SNAPSHOT)
        assert rows_of(part, run) == [{"id": 1, "note": None}]
        refused = part.post(f"{orders}/exports", json={**SNAPSHOT, "where": "note = 'c'"})
        problem(refused, 403, "masked-column")


def test_cron_schedule_runs_at_its_times_only(
    client: httpx2.Client, orders: str, feed: str, service: Service
) -> None:
    answer = client.post(f"{orders}/exports", json={**SNAPSHOT, "schedule": DAILY})
    assert answer.status_code == 202, answer.text
    export = answer.headers["location"]
    service.work()
    state = client.get(export).json()
    assert (state["schedule"], state["runs"], state["state"]) == (DAILY, [], "active")
    following = [datetime.fromisoformat(each) for each in state["next_runs"]]
    assert len(following) == 3
    assert datetime.now(UTC) < following[0] < datetime.now(UTC) + timedelta(days=1, hours=1)
    # Days that were missed are made up for by one run.
    pass_days(service, export, 3)
    service.work()
    service.work()
    [run] = client.get(export).json()["runs"]
    assert (run["state"], run["version"], run["rows"]) == ("succeeded", 2, 2)
    write(client, service, orders, upsert({"id": 9}))
    service.work()
    assert len(client.get(export).json()["runs"]) == 1, "its time has not come"
    pass_days(service, export)
    service.work()
    assert [run["version"] for run in client.get(export).json()["runs"]] == [3, 2]
    # Without a new version a time makes no run, and is not made up for later.
    pass_days(service, export)
    service.work()
    write(client, service, orders, upsert({"id": 10}))
    service.work()
    assert len(client.get(export).json()["runs"]) == 2


def test_cron_schedule_of_changes_continues_at_its_position(
    client: httpx2.Client, orders: str, feed: str, service: Service
) -> None:
    body = {"query": "changes", "format": "ndjson", "schedule": {"cron": "30 2 * * *"}}
    export = client.post(f"{orders}/exports", json=body).headers["location"]
    service.work()
    assert client.get(export).json()["runs"] == []
    pass_days(service, export)
    service.work()
    write(client, service, orders, upsert({"id": 9}))
    pass_days(service, export)
    service.work()
    assert [(run["since"], run["until"]) for run in client.get(export).json()["runs"]] == [(4, 5), (0, 4)]


def test_times_of_a_pause_are_not_made_up_for(
    client: httpx2.Client, orders: str, feed: str, service: Service
) -> None:
    export = client.post(f"{orders}/exports", json={**SNAPSHOT, "schedule": DAILY}).headers["location"]
    for state in ("paused", "active"):
        etag = client.get(export).headers["etag"]
        patched = client.patch(export, json={"state": state}, headers={"If-Match": etag})
        assert patched.status_code == 200
        if state == "paused":
            assert patched.json()["next_runs"] == []
            pass_days(service, export, 2)
        service.work()
    assert client.get(export).json()["runs"] == []
    etag = client.get(export).headers["etag"]
    change = {"schedule": {"cron": "0 7 * * *", "zone": "nowhere"}}
    refused = client.patch(export, json=change, headers={"If-Match": etag})
    assert problem(refused, 400, "invalid-request")["errors"][0]["pointer"] == "/schedule/zone"


def test_failed_run_of_a_cron_schedule_is_tried_again_after_an_hour(
    client: httpx2.Client, orders: str, feed: str, service: Service
) -> None:
    folder = service.settings.data_dir / "outgoing"
    folder.mkdir(exist_ok=True)
    # Where a file is, no folder can be made.
    blocked = folder / tenant_of(client, service)
    blocked.write_text("")
    body = {**SNAPSHOT, "schedule": DAILY, "destination": (blocked / "daily").as_uri()}
    export = client.post(f"{orders}/exports", json=body).headers["location"]
    pass_days(service, export)
    service.work()
    state = client.get(export).json()
    assert (state["runs"][0]["state"], state["error"]["type"]) == ("failed", "/problems/destination-failed")
    blocked.unlink()
    service.work()
    assert client.get(export).json()["runs"][0]["state"] == "failed"
    export_id = export.rsplit("/", 1)[1]
    with service.database.tenant(owner(service, export_id)) as connection:
        connection.execute(text("UPDATE jobs SET created_at = created_at - interval '61 minutes'"))
        connection.execute(
            text("UPDATE consumers SET wake_at = now() WHERE name = :name"), {"name": f"export:{export_id}"}
        )
    service.work()
    [run] = client.get(export).json()["runs"]
    assert (run["number"], run["state"]) == (1, "succeeded")
    assert list((blocked / "daily").rglob("manifest.json"))
