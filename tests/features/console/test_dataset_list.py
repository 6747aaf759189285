"""The list of datasets: its search, labels, order and pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.support.http import ORDERS, upsert
from tests.support.pages import PageElement, page, parsed

LIST = "/console/datasets"


def names(root: PageElement) -> list[str]:
    return [row[0] for row in root.one("table", class_="list").rows()[1:]]


def make(client: httpx2.Client, *made: str, **members: Any) -> None:
    for name in made:
        assert client.post("/datasets", json=ORDERS | {"name": name} | members).status_code == 201


def test_a_tenant_without_datasets_is_shown_how_to_begin(stranger: httpx2.Client) -> None:
    assert "--create" in page(stranger, LIST).one("div", class_="empty").text


def test_a_part_of_a_name_selects_datasets(client: httpx2.Client, visitor: httpx2.Client) -> None:
    make(client, "north_wind", "south_wind", "rain")
    assert names(page(visitor, LIST)) == ["north_wind", "rain", "south_wind"]
    root = page(visitor, f"{LIST}?q=wind")
    assert names(root) == ["north_wind", "south_wind"]
    assert "No dataset has “snow” in its name" in page(visitor, f"{LIST}?q=snow").text
    hostile = page(visitor, f"{LIST}?q=%3Cb%3E%22")
    assert '“<b>"”' in hostile.text


def test_labels_select_datasets(client: httpx2.Client, visitor: httpx2.Client) -> None:
    make(client, "one", labels={"team": "ops"})
    make(client, "two", labels={"team": "lab"})
    root = page(visitor, LIST)
    chosen = page(visitor, root.link("team:ops"))
    assert names(chosen) == ["one"]
    assert "label" not in chosen.one("a", aria_current="true").attributes["href"]


def test_heads_sort_the_list(client: httpx2.Client, visitor: httpx2.Client, service: Any) -> None:
    make(client, "few", "many", "none")
    client.post("/datasets/few/writes", json=upsert({"id": 1}))
    client.post("/datasets/many/writes", json=upsert(*({"id": each} for each in range(9))))
    service.work()
    root = page(visitor, LIST)
    falling = page(visitor, root.link("Rows in, 24 h"))
    assert names(falling) == ["many", "few", "none"]
    rising = page(visitor, falling.link("Rows in, 24 h"))
    assert names(rising) == ["none", "few", "many"]
    sorted_heads = [each.text for each in rising.all("th") if "aria-sort" in each.attributes]
    assert sorted_heads == ["Rows in, 24 h"]


def test_many_datasets_are_shown_in_pages(client: httpx2.Client, visitor: httpx2.Client) -> None:
    make(client, *(f"d{each:03d}" for each in range(130)))
    first = page(visitor, LIST)
    assert len(names(first)) == 100
    second = page(visitor, first.link("Next page"))
    assert names(second) == [f"d{each:03d}" for each in range(100, 130)]
    assert names(page(visitor, second.link("Previous page"))) == names(first)


def test_a_reader_of_a_part_sees_names_without_numbers(
    client: httpx2.Client, orders: str, service: Any, restricted: Any
) -> None:
    make(client, "hidden")
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    service.work()
    root = page(restricted({"datasets": "orders", "mask": ["note"]}), LIST)
    assert names(root) == ["orders"]
    row = root.one("table", class_="list").rows()[1]
    assert row[1] == "seen in part"
    assert row[3:9] == ["–"] * 6


def test_names_are_offered_while_one_types(
    client: httpx2.Client, visitor: httpx2.Client, restricted: Callable[..., httpx2.Client]
) -> None:
    make(client, "north_wind", "south_wind", "rain", *(f"d{each:03d}" for each in range(21)))

    def offers(browser: httpx2.Client, text: str) -> list[str]:
        response = browser.get(f"/console/dataset-names?text={text}")
        assert response.status_code == 200
        return [each.attributes["value"] for each in parsed(response.text).one("datalist").all("option")]

    assert offers(visitor, "wind") == ["north_wind", "south_wind"]
    assert offers(visitor, "%3Cb%3E%22") == []
    assert offers(visitor, "x" * 500) == []
    assert len(offers(visitor, "")) == 20
    granted = {"datasets": "north_*", "scopes": ["read"]}
    assert offers(restricted(granted), "wind") == ["north_wind"]


@pytest.mark.parametrize("path", ["jobs", "sources", "webhooks", "views"])
def test_a_list_sends_one_request_and_offers_names_on_request(
    path: str, client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    root = page(visitor, f"/console/{path}")
    requests = root.one("footer").text.split("curl ")[1:]
    assert requests
    assert all(f"/{path}?" in each for each in requests)
    assert root.all("datalist") == []
