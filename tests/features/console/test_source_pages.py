"""Pages of sources: how far each has read, why it stands, and what forms do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import msgspec
import pytest

from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.service import Service
from tests.support.sources import Incoming


@pytest.fixture
def incoming(client: httpx2.Client, service: Service, orders: str) -> Incoming:
    """A folder that sources of the tenant may read."""
    return Incoming.of(client, service)


def figures(root: PageElement) -> dict[str, str]:
    return {each.one("dt").text: each.all("dd")[0].text for each in root.all("div", class_="figure")}


def test_the_list_has_state_lag_and_the_last_round(visitor: httpx2.Client, incoming: Incoming) -> None:
    incoming.put("1.ndjson", {"id": 1}, {"id": 2})
    incoming.run(incoming.register(mode="continuous"))
    root = page(visitor, "/console/sources")
    name, dataset, kind, state, behind, _, _, rounds, last, error = root.one("table").rows()[1]
    assert (name, dataset, kind, state, rounds, error) == ("in", "orders", "files", "active", "1", "")
    assert behind.split()[1] in ("item", "items")
    assert last != "–"
    assert root.link("in") == "/console/sources/in"
    assert page(visitor, "/console/sources?dataset=lost", status=404).one("div", role="alert")


def test_without_sources_the_list_leads_to_the_first(stranger: httpx2.Client) -> None:
    root = page(stranger, "/console/sources")
    assert "headwater sources create" in root.one("div", class_="empty").text
    definition = msgspec.json.decode(root.one("textarea", name="definition").text)
    assert definition["kind"] == "files"


def test_a_definition_registers_a_source(visitor: httpx2.Client, incoming: Incoming) -> None:
    text = msgspec.json.encode(incoming.source()).decode()
    answer = submit(visitor, page(visitor, "/console/sources"), "/console/sources", definition=text)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sources/in")
    assert "Source in is registered" in page(visitor, "/console/sources/in").text


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"mode": "always"}, "/mode"),
        ({"config": {"path": 7}}, "/config/path"),
        ({"mood": "<i>good</i>"}, "/mood"),
    ],
    ids=str,
)
def test_faults_of_a_definition_are_named_by_their_members(
    visitor: httpx2.Client, incoming: Incoming, change: dict[str, Any], fault: str
) -> None:
    text = msgspec.json.encode(incoming.source() | change).decode()
    answer = submit(visitor, page(visitor, "/console/sources"), "/console/sources", definition=text)
    assert answer.status_code in (400, 422), answer.text
    root = checked_page(answer)
    assert fault in root.one("div", role="alert").text
    assert root.one("textarea", name="definition").text == text
    assert root.all("i") == []


def test_a_text_that_is_no_json_is_refused_with_its_place(visitor: httpx2.Client, incoming: Incoming) -> None:
    assert incoming.folder.exists()
    answer = submit(visitor, page(visitor, "/console/sources"), "/console/sources", definition='{"name": }')
    assert answer.status_code == 400
    root = checked_page(answer)
    assert (
        "byte 9" in root.one("form", method="post", action="/console/sources").one("p", class_="fault").text
    )


def test_a_source_that_has_failed_says_why_at_its_top(visitor: httpx2.Client, incoming: Incoming) -> None:
    incoming.put("1.ndjson", {"id": "<u>no number</u>"})
    incoming.run(incoming.register(mode="continuous"))
    root = page(visitor, "/console/sources/in")
    top = root.one("div", id="source").all("p")[0].text
    assert top.startswith("failed Rows do not match the schema of the dataset:")
    assert root.all("u") == []
    rounds = [row[1] for row in root.all("table")[0].rows()[1:]]
    assert rounds == ["failed"]
    assert "1 round has failed in a row" in root.text
    # It stands still: a time that was measured before would not grow.
    assert "Oldest unread" not in root.text


def test_rounds_run_on_request_and_states_change(
    client: httpx2.Client, visitor: httpx2.Client, incoming: Incoming
) -> None:
    incoming.run(incoming.register(mode="continuous"))
    path = "/console/sources/in"
    submit(visitor, page(visitor, path), f"{path}/state")
    root = page(visitor, path)
    assert "Its users have paused it" in root.text
    incoming.put("1.ndjson", {"id": 1})
    started = submit(visitor, root, f"{path}/rounds")
    assert started.headers["location"].startswith("/console/jobs/")
    incoming.service.work()
    assert client.get("/datasets/orders").json()["version"] == 1
    root = page(visitor, path)
    assert figures(root)["Rounds"] == "1"
    assert root.link(root.all("table")[0].rows()[1][0]).startswith("/console/jobs/")
    submit(visitor, root, f"{path}/state")
    assert client.get("/sources/in").json()["state"] == "active"


def test_settings_and_position_change_under_the_etag_of_the_page(
    client: httpx2.Client, visitor: httpx2.Client, incoming: Incoming
) -> None:
    incoming.put("1.ndjson", {"id": 1})
    incoming.run(incoming.register(mode="continuous"))
    path = "/console/sources/in"
    root = page(visitor, path)
    answer = submit(visitor, root, f"{path}/settings", max_rows="5,000", interval_seconds="2.5")
    assert answer.status_code == 303, answer.text
    source = client.get("/sources/in").json()
    assert (source["max_rows"], source["interval_seconds"]) == (5_000, 2.5)
    assert submit(visitor, root, f"{path}/position", position="{}").status_code == 412
    again = submit(visitor, page(visitor, path), f"{path}/position", position="{}")
    assert again.status_code == 303
    assert client.get("/sources/in").json()["rounds"] == 2
    refused = submit(visitor, page(visitor, path), f"{path}/settings", max_rows="all")
    assert refused.status_code == 400
    assert "expected a whole number" in checked_page(refused).one("p", class_="fault").text


def test_a_key_sees_and_does_what_it_may(
    visitor: httpx2.Client, incoming: Incoming, restricted: Callable[..., httpx2.Client]
) -> None:
    incoming.run(incoming.register(mode="continuous"))
    assert page(visitor, "/console/sources").one("table")
    reader = restricted({"datasets": "orders"})
    assert [each.text for each in page(reader, "/console/sources/in").all("button")] == ["Sign out"]
    assert page(reader, "/console/sources").all("textarea") == []
    other = restricted({"datasets": "others"})
    assert "No source reads by itself yet" in page(other, "/console/sources").text
    assert page(other, "/console/sources/in", status=404)
    part = restricted({"datasets": "orders", "where": "id = 1"})
    assert page(part, "/console/sources/in", status=403).one("div", role="alert")


def test_a_source_is_deleted_and_its_dataset_stays(
    client: httpx2.Client, visitor: httpx2.Client, incoming: Incoming
) -> None:
    incoming.register(mode="continuous")
    path = "/console/sources/in"
    root = page(visitor, path)
    assert submit(visitor, root, f"{path}/delete").status_code == 400
    deleted = submit(visitor, root, f"{path}/delete", confirm="yes")
    assert (deleted.status_code, deleted.headers["location"]) == (303, "/console/sources")
    assert "The source in is deleted." in page(visitor, "/console/sources").text
    assert client.get("/sources/in").status_code == 404
    assert client.get("/datasets/orders").status_code == 200
