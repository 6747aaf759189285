"""Pages of exports: schedules, runs, and the files of these, which a session downloads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.support.exports import EVERY_MINUTE, ONCE, write
from tests.support.http import upsert
from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.service import Service


def figures(root: PageElement) -> dict[str, str]:
    return {each.one("dt").text: each.all("dd")[0].text for each in root.all("div", class_="figure")}


def files_of(root: PageElement) -> PageElement:
    return root.all("table")[-1]


def test_the_list_has_schedules_and_the_last_success(
    client: httpx2.Client, visitor: httpx2.Client, export: str
) -> None:
    assert client.get(export).json()["state"] == "active"
    root = page(visitor, "/console/exports")
    _, dataset, files, state, schedule, following, position, last, rows, error = root.one("table").rows()[1]
    assert (dataset, files, state) == ("orders", "changes, ndjson", "active")
    assert schedule.startswith("every 1 min")
    assert following.startswith("in ")
    assert (position, rows, error) == ("1", "1", "")
    assert last != "–"
    assert page(visitor, "/console/exports?dataset=lost", status=404).one("div", role="alert")


def test_exports_of_all_datasets_are_listed_by_state(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, export: str, service: Service
) -> None:
    client.post(f"{orders}/exports", json=ONCE | {"name": "<b>once</b>"})
    service.work()
    root = page(visitor, "/console/exports")
    assert [row[:4:3] for row in root.one("table").rows()[1:]] == [
        ["<b>once</b>", "ended"],
        [f"{export.rsplit('/', 1)[1][:13]}…", "active"],
    ]
    ended = page(visitor, root.link("ended"))
    assert [row[0] for row in ended.one("table").rows()[1:]] == ["<b>once</b>"]
    assert page(visitor, ended.link("paused")).one("p", class_="empty").text == "No such export."
    filtered = page(visitor, "/console/exports?dataset=orders&state=ended")
    assert [row[0] for row in filtered.one("table").rows()[1:]] == ["<b>once</b>"]
    assert filtered.link("active") == "/console/exports?dataset=orders&state=active"


def test_without_exports_the_list_leads_to_the_first(stranger: httpx2.Client) -> None:
    root = page(stranger, "/console/exports")
    assert "headwater exports create" in root.one("div", class_="empty").text
    assert root.one("form", action="/console/exports", method="post")


def test_the_form_registers_an_export_at_times_of_day(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    fields = {
        "dataset": "orders",
        "query": "snapshot",
        "format": "csv",
        "name": "nightly",
        "cron": "0 6 * * 1-5",
        "zone": "Europe/Berlin",
    }
    answer = submit(visitor, page(visitor, "/console/exports"), "/console/exports", **fields)
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"]
    root = page(visitor, path)
    assert root.one("h1").text == "nightly"
    shown = figures(root)
    assert shown["Schedule"] == "0 6 * * 1-5 Europe/Berlin"
    assert shown["Position"] == "no run yet"
    assert shown["Next run"].startswith("in ")
    write(client, service, orders, upsert({"id": 1}))
    assert submit(visitor, root, f"{path}/runs").status_code == 303
    service.work()
    assert figures(page(visitor, path))["Position"] == "version 1"


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"cron": "0 6 * *"}, "five fields"),
        ({"cron": "0 6 * * *", "zone": "Europe/Berlim"}, "Europe/Berlin"),
        ({"every_seconds": "often"}, "expected a whole number"),
    ],
    ids=str,
)
def test_faults_of_a_schedule_stand_at_their_fields(
    visitor: httpx2.Client, orders: str, fields: dict[str, str], fault: str
) -> None:
    answer = submit(
        visitor, page(visitor, "/console/exports"), "/console/exports", dataset="orders", **fields
    )
    assert answer.status_code == 400, answer.text
    form = checked_page(answer).one("form", action="/console/exports", method="post")
    assert fault in form.one("p", class_="fault").text
    for name, value in fields.items():
        assert form.one("input", name=name).attributes["value"] == value


def test_files_of_a_run_are_downloaded_with_the_session(
    client: httpx2.Client, visitor: httpx2.Client, export: str, browser: Any
) -> None:
    root = page(visitor, f"/console{export}")
    name, rows, size, digest = files_of(root).rows()[1]
    assert rows == "1"
    assert size.endswith(" B")
    path = root.link(name)
    answer = visitor.get(path)
    assert answer.status_code == 200
    assert hashlib.sha256(answer.content).hexdigest().startswith(digest.rstrip("…"))
    assert answer.content == client.get(path.removeprefix("/console")).content
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    part = visitor.get(path, headers={"Range": "bytes=2-5"})
    assert (part.status_code, part.content) == (206, answer.content[2:6])
    assert visitor.get(root.link("manifest.json")).json()["files"][0]["name"] == name
    assert browser().get(path).headers["location"].startswith("/console/sign-in?next=")
    assert page(visitor, path + "x", status=404).one("div", role="alert")
    assert page(visitor, f"/console{export}/runs/9/files/{name}", status=404).one("div", role="alert")


def test_files_have_the_type_that_the_api_gives(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    write(client, service, orders, upsert({"id": 1}))
    client.post(f"{orders}/exports", json=ONCE | {"format": "csv"})
    service.work()
    [made] = client.get(f"{orders}/exports").json()["items"]
    root = page(visitor, f"/console/exports/{made['id']}")
    for row in ("manifest.json", files_of(root).rows()[1][0]):
        path = root.link(row)
        kind = visitor.get(path).headers["content-type"]
        assert kind == client.get(path.removeprefix("/console")).headers["content-type"]
        assert kind.count("charset") <= 1


def test_a_large_file_arrives_whole(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    note = "".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(2_000))
    for first in range(0, 30, 2):
        write(client, service, orders, upsert({"id": first, "note": note}))
    client.post(f"{orders}/exports", json=ONCE)
    service.work()
    [made] = client.get(f"{orders}/exports").json()["items"]
    root = page(visitor, f"/console/exports/{made['id']}")
    path = root.link(files_of(root).rows()[1][0])
    answer = visitor.get(path)
    assert len(answer.content) > 1_500_000
    assert answer.content == client.get(path.removeprefix("/console")).content


def test_runs_start_on_request_and_states_change(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, export: str, service: Service
) -> None:
    path = f"/console{export}"
    submit(visitor, page(visitor, path), f"{path}/state")
    root = page(visitor, path)
    assert "Its schedule starts no runs until it is resumed." in root.text
    write(client, service, orders, upsert({"id": 2}))
    assert submit(visitor, root, f"{path}/runs").headers["location"] == path
    service.work()
    root = page(visitor, path)
    assert [row[:2] for row in root.all("table")[0].rows()[1:]] == [["2", "succeeded"], ["1", "succeeded"]]
    assert "Files of run 2" in root.text
    assert "Files of run 1" in page(visitor, root.link("1")).text
    submit(visitor, root, f"{path}/state")
    assert client.get(export).json()["state"] == "active"


def test_a_schedule_changes_under_the_etag_of_the_page(
    client: httpx2.Client, visitor: httpx2.Client, export: str
) -> None:
    path = f"/console{export}"
    root = page(visitor, path)
    answer = submit(visitor, root, f"{path}/schedule", every_seconds="", cron="30 2 * * *", zone="Asia/Tokyo")
    assert answer.status_code == 303, answer.text
    assert client.get(export).json()["schedule"] == {"cron": "30 2 * * *", "zone": "Asia/Tokyo"}
    late = submit(visitor, root, f"{path}/schedule", every_seconds="120")
    assert late.status_code == 412
    assert checked_page(late).one("input", name="every_seconds").attributes["value"] == "120"


def test_a_run_that_failed_says_why(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Service
) -> None:
    write(client, service, orders, upsert({"id": 1}))
    made = client.post(f"{orders}/exports", json=EVERY_MINUTE | {"schedule": {"every_seconds": 3_600}})
    job = client.get(made.headers["location"]).json()["runs"][0]["job_id"]
    client.post(f"/jobs/{job}/cancel")
    root = page(visitor, f"/console{made.headers['location']}")
    assert root.all("table")[0].rows()[1][1] == "cancelled"
    assert root.link(f"{job[:13]}…") == f"/console/jobs/{job}"
    assert root.all("a", download="") == []


def test_a_key_sees_and_does_what_it_may(
    export: str, visitor: httpx2.Client, restricted: Callable[..., httpx2.Client]
) -> None:
    path = page(visitor, f"/console{export}").link("manifest.json")
    reader = restricted({"datasets": "orders"})
    root = page(reader, f"/console{export}")
    assert [each.text for each in root.all("button")] == ["Sign out"]
    assert reader.get(path).status_code == 200
    other = restricted({"datasets": "others"})
    assert page(other, f"/console{export}", status=404)
    assert other.get(path).status_code == 404
    part = restricted({"datasets": "orders", "where": "id = 1"})
    assert part.get(path).status_code == 404
    assert page(part, "/console/exports").one("h1").text == "Exports"


def test_an_export_is_deleted_with_its_files(
    client: httpx2.Client, visitor: httpx2.Client, export: str, restricted: Callable[..., httpx2.Client]
) -> None:
    path = f"/console{export}"
    root = page(visitor, path)
    file = root.link("manifest.json")
    assert submit(visitor, root, f"{path}/delete").status_code == 400
    assert page(restricted({"datasets": "orders"}), path).all("details", class_="deletion") == []
    deleted = submit(visitor, root, f"{path}/delete", confirm="yes")
    assert (deleted.status_code, deleted.headers["location"]) == (303, "/console/exports")
    assert "The export is deleted." in page(visitor, "/console/exports").text
    assert client.get(export).status_code == 404
    assert page(visitor, file, status=404)
