"""The timeline of a dataset: what has happened, names of versions, and restores."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.http import ORDERS, upsert
from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.races import overtaken
from tests.support.schema_changes import change
from tests.support.service import Service

PATH = "/console/datasets/orders/timeline"
HOSTILE = '<script>alert("x")</script>'


def write(client: httpx2.Client, service: Service, path: str, *rows: dict[str, Any], **more: Any) -> None:
    response = client.post(f"{path}/writes", json=upsert(*rows) | more)
    assert response.status_code == 202, response.text
    service.work()


@pytest.fixture
def history(client: httpx2.Client, service: Service, orders: str) -> str:
    """The path of a dataset with three writes, of which the second changed a row, and a new column."""
    write(client, service, orders, {"id": 1, "note": "a"}, {"id": 2, "note": "b"})
    write(client, service, orders, {"id": 1, "note": "c"}, metadata={"run": HOSTILE})
    step = change(client, orders, {"kind": "add", "field": {"name": "price", "type": "double"}})
    assert step.status_code == 200, step.text
    write(client, service, orders, {"id": 3, "note": "d"})
    return orders


def instants(root: PageElement) -> list[list[str]]:
    """The cells of the list, without its head."""
    return root.one("table", class_="list").rows()[1:]


def links_of(root: PageElement) -> list[str]:
    """The addresses that show an instant, the latest first."""
    rows = root.one("table", class_="list").one("tbody").all("tr")
    return [each.all("a")[0].attributes["href"].partition("#")[0] for each in rows]


def test_instants_are_listed_and_drawn(history: str, visitor: httpx2.Client) -> None:
    root = page(visitor, PATH)
    rows = instants(root)
    assert [row[0] for row in rows] == ["v4", "v3", "v2", "v1"]
    assert ["●" in row[2] for row in rows] == [True, False, True, True]
    assert rows[0][3] == "+1"
    assert rows[2][3] == "↻1"
    chart = root.one("svg", class_="timeline")
    assert [each.attributes["class"] for each in chart.all("a")] == ["write", "write", "schema", "write"]
    assert [each.text for each in chart.all("text")] == ["v1", "v2", "v3", "v4"]
    assert chart.all("a")[0].attributes["href"].startswith(f"{PATH}?instant=")


def test_an_instant_is_shown_in_full(history: str, visitor: httpx2.Client, client: httpx2.Client) -> None:
    links = links_of(page(visitor, PATH))
    shown = page(visitor, links[2]).one("section", id="instant")
    job = client.get(f"{history}/timeline").json()["items"][2]["job_id"]
    assert f"/console/jobs/{job}" in {each.attributes["href"] for each in shown.all("a")}
    assert HOSTILE in shown.text
    assert "1 updated" in shown.text
    schema_change = page(visitor, links[1]).one("section", id="instant")
    assert "+ price double" in schema_change.text
    assert "+ price double" not in page(visitor, links[0]).one("section", id="instant").text


def test_an_instant_outside_of_the_page_is_shown(history: str, visitor: httpx2.Client) -> None:
    """The address of an instant stays valid, whatever else is selected."""
    link = links_of(page(visitor, PATH))[2]
    shown = page(visitor, f"{link}&kind=schema")
    assert "1 updated" in shown.one("section", id="instant").text
    assert len(instants(shown)) == 1
    for unknown in ("nothing", "20261121100000000000-4f5e7d", "9" * 400):
        assert "There is no instant" in page(visitor, f"{PATH}?instant={unknown}").text


def test_ranges_and_kinds_select(history: str, visitor: httpx2.Client) -> None:
    assert len(instants(page(visitor, f"{PATH}?range=1h"))) == 4
    assert [row[0] for row in instants(page(visitor, f"{PATH}?kind=schema&range=1d"))] == ["v3"]
    nothing = page(visitor, f"{PATH}?kind=restores")
    assert "Nothing of this kind" in nothing.text
    assert nothing.link("The whole timeline") == PATH


def test_a_write_that_was_planned_again_names_what_won(
    client: httpx2.Client, service: Service, orders: str, visitor: httpx2.Client
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "slow"}))
    overtaken(service, lambda: client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "fast"})))
    root = page(visitor, PATH)
    [slow] = [row for row in instants(root) if row[0] == "v2"]
    assert "planned again after v1 (1 time)" in slow[2]
    assert root.link("v1") == f"{PATH}?version=1"
    assert "planned again" not in " ".join(next(row for row in instants(root) if row[0] == "v1"))
    shown = [page(visitor, each).one("section", id="instant").text for each in links_of(root)]
    assert sum("planned again after v1 (1 time), since other commits" in each for each in shown) == 1


def test_pages_of_a_range_follow_each_other(
    client: httpx2.Client, service: Service, orders: str, visitor: httpx2.Client
) -> None:
    for number in range(61):
        client.post(f"{orders}/writes", json=upsert({"id": number, "note": "x"}))
    service.work()
    first = page(visitor, f"{PATH}?range=1h")
    assert len(instants(first)) == 60
    second = page(visitor, first.link("Earlier"))
    assert len(instants(second)) == 1
    assert second.link("Latest") == f"{PATH}?range=1h"


def test_a_version_is_named_marked_and_the_name_removed(
    history: str, visitor: httpx2.Client, service: Service, client: httpx2.Client
) -> None:
    root = page(visitor, f"{links_of(page(visitor, PATH))[2]}")
    names = "/console/datasets/orders/timeline/names"
    with service.working():
        response = submit(visitor, root, names, name="before", kind="savepoint", days="2")
    assert response.headers["location"] == PATH
    named = page(visitor, PATH)
    assert "The savepoint before keeps the version." in named.one("p", class_="notice").text
    assert client.get(f"{history}/savepoints/before").json()["version"] == 2
    assert "before" in named.one("svg", class_="timeline").text
    [row] = [row for row in instants(named) if row[0] == "v2" and "●" in row[2]]
    assert "before" in row[2]
    assert submit(visitor, named, f"{names}/delete").status_code == 303
    assert client.get(f"{history}/savepoints").json()["items"] == []


def test_a_name_that_is_refused_is_shown_with_what_was_typed(history: str, visitor: httpx2.Client) -> None:
    root = page(visitor, PATH)
    response = submit(visitor, root, f"{PATH}/names", name="-x", version="1")
    assert response.status_code == 400
    again = checked_page(response)
    assert again.all("div", class_="problem")
    assert again.one("input", id="field-name").attributes["value"] == "-x"


def test_a_restore_names_what_it_undoes_first(
    history: str, visitor: httpx2.Client, service: Service, client: httpx2.Client
) -> None:
    root = page(visitor, f"{PATH}?restore=1")
    shown = root.one("section", id="restore")
    assert "undoes 2 writes" in shown.text
    assert "+1 ↻1 rows" in shown.text
    assert client.get(history).json()["version"] == 4
    with service.working():
        assert submit(visitor, root, f"{PATH}/restore").status_code == 303
    assert "rows of version 1 again, as version 5" in page(visitor, PATH).text
    assert {each["note"] for each in client.get(f"{history}/rows").json()["rows"]} == {"a", "b"}
    # The same form again: the dataset is at another version now.
    with service.working():
        refused = submit(visitor, root, f"{PATH}/restore")
    assert refused.status_code == 409
    assert "version" in checked_page(refused).all("div", class_="problem")[0].text
    assert "nothing to undo" in page(visitor, f"{PATH}?restore=5").text


def test_versions_are_compared_in_a_job(history: str, visitor: httpx2.Client, service: Service) -> None:
    root = page(visitor, f"{PATH}?restore=1")
    with service.working():
        response = submit(visitor, root, f"{PATH}/compare")
    assert response.headers["location"].startswith("/console/jobs/")


def test_a_failed_write_has_its_problem_and_the_winner(
    history: str, visitor: httpx2.Client, service: Service, client: httpx2.Client
) -> None:
    body = {"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 1, "note": "x"}]}}
    client.post(f"{history}/writes", json=body)
    service.work()
    root = page(visitor, PATH)
    assert "failed" in instants(root)[0][2]
    assert "failed" in root.one("svg", class_="timeline").all("a")[-1].attributes["class"]
    shown = page(visitor, links_of(root)[0]).one("section", id="instant")
    assert shown.all("div", class_="problem")


def test_an_empty_timeline_has_the_command_for_a_write(orders: str, visitor: httpx2.Client) -> None:
    root = page(visitor, PATH)
    assert "headwater write orders" in root.text
    assert not root.all("svg", class_="timeline")


def test_a_key_that_reads_only_sees_no_forms(history: str, restricted: Any) -> None:
    reader = restricted({"datasets": "orders"})
    root = page(reader, PATH)
    assert len(instants(root)) == 4
    assert "needs the scope manage" in root.text
    assert not [each for each in root.all("form") if "/timeline" in each.attributes.get("action", "")]
    refused = reader.post(
        f"{PATH}/restore",
        data={
            "token": root.all("input", name="token")[0].attributes["value"],
            "version": "1",
            "expected_version": "4",
        },
    )
    assert refused.status_code == 403


@pytest.mark.parametrize("grant", [{"where": "id = 1"}, {"mask": ["note"]}], ids=str)
def test_a_key_that_sees_a_part_sees_why_the_timeline_is_missing(
    history: str, restricted: Any, grant: dict[str, Any]
) -> None:
    root = page(restricted({"datasets": "orders", **grant}), PATH)
    assert "The timeline cannot be shown" in root.text


def test_a_dataset_of_another_tenant_is_not_there(history: str, stranger: httpx2.Client) -> None:
    assert "v4" not in page(stranger, PATH, 404).text


def test_long_names_do_not_make_the_page_large(
    client: httpx2.Client, service: Service, visitor: httpx2.Client
) -> None:
    path = client.post("/datasets", json=ORDERS | {"name": "n" * 128}).headers["location"]
    for number in range(60):
        client.post(f"{path}/writes", json=upsert({"id": number, "note": HOSTILE}))
    service.work()
    root = page(visitor, f"/console/datasets/{'n' * 128}/timeline")
    assert len(instants(root)) == 60
