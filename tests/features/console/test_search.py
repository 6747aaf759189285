"""The search over everything."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import pytest

from app.features.console.pages.search import dataset_and_rest
from tests.support.http import ORDERS, upsert
from tests.support.pages import PageElement, page


def matches(root: PageElement) -> list[list[str]]:
    return [row[:2] for row in root.one("table").rows()[1:]]


def search(visitor: httpx2.Client, text: str) -> PageElement:
    return page(visitor, str(httpx2.URL("/console/search", params={"q": text})))


def test_without_a_text_the_page_has_what_can_be_searched(visitor: httpx2.Client) -> None:
    assert "orders 42" in search(visitor, "").text


def test_datasets_are_searched_by_a_part_of_their_name_and_by_id(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    client.post("/datasets", json=ORDERS | {"name": "old_orders"})
    assert matches(search(visitor, "orders")) == [["dataset", "orders"], ["dataset", "old_orders"]]
    by_id = search(visitor, client.get(orders).json()["id"])
    assert by_id.link("orders") == "/console/datasets/orders"


def test_rows_changes_and_versions_are_searched_within_a_dataset(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}, {"id": 42}))
    service.work()
    root = search(visitor, "orders 42")
    assert root.link("orders/42") == "/console/datasets/orders/rows/row?key=42"
    one = search(visitor, "orders 1")
    assert one.link("orders, offset 1") == "/console/datasets/orders/changes?since=1"
    assert one.link("orders, v1") == "/console/datasets/orders/rows?version=1"
    assert matches(search(visitor, "orders v1")) == [["version", "orders, v1"]]
    # A key without a row may have had one.
    assert search(visitor, "orders 43").link("orders/43") == "/console/datasets/orders/rows/row?key=43"


def test_jobs_are_searched_by_id(client: httpx2.Client, visitor: httpx2.Client, orders: str) -> None:
    job = client.post(f"{orders}/writes", json=upsert({"id": 1})).json()["id"]
    root = search(visitor, job)
    assert matches(root) == [["job", job]]
    assert root.link(job) == f"/console/jobs/{job}"


def test_requests_are_searched_by_id(client: httpx2.Client, visitor: httpx2.Client, orders: str) -> None:
    changed = client.patch(orders, json={"description": "x"}, headers={"If-Match": '"0"'})
    request_id = changed.headers["x-request-id"]
    root = search(visitor, request_id)
    assert ["request", request_id] in matches(root)


def test_what_does_not_exist_or_is_not_granted_is_not_shown(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, restricted: Any
) -> None:
    client.post("/datasets", json=ORDERS | {"name": "secret_orders"})
    assert "Nothing has this name" in search(visitor, "<b>none</b>").text
    reader = restricted({"datasets": "orders"})
    assert matches(search(reader, "orders")) == [["dataset", "orders"]]
    assert "Nothing has this name" in search(reader, "secret_orders 1").text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders", ("orders", "")),
        ("orders 42", ("orders", "42")),
        ("orders / 42 43", ("orders", "42 43")),
        ("/orders", ("", "orders")),
        ("orders/", ("orders", "")),
    ],
)
def test_a_text_is_a_dataset_and_what_is_in_it(text: str, parts: tuple[str, str]) -> None:
    assert dataset_and_rest(text) == parts


def test_a_long_text_is_divided_in_time_that_is_linear_in_it() -> None:
    began = time.process_time()
    assert dataset_and_rest("a" + "/" * 200_000 + "b\nc") == ("a", "b\nc")
    assert time.process_time() - began < 5
