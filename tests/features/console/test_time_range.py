"""The range of time of pages: it selects, and it stays when the page changes."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.http import upsert
from tests.support.pages import PageElement, page, submit
from tests.support.postgres import TestServer

DATASET = "/console/datasets/orders"
RANGED = (
    "/console",
    DATASET,
    f"{DATASET}/timeline",
    f"{DATASET}/changes",
    "/console/jobs",
    "/console/usage",
    "/console/audit",
)


@pytest.fixture
def two_days(client: httpx2.Client, orders: str, service: Any, postgres: TestServer) -> str:
    """The path of a dataset with a write of two days ago, and one of now."""
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "early"}))
    service.work()
    tenant = client.get("/me").json()["tenant"]["id"]
    ago = "now() - interval '2 days'"
    with postgres.administration(service.database._engine.url.database) as connection:
        for change in (
            f"commits SET committed_at = {ago}",
            f"instants SET requested_at = {ago}, completed_at = {ago}",
            f"jobs SET created_at = {ago}",
        ):
            connection.execute(f"UPDATE {change} WHERE tenant_id = '{tenant}'".encode())
    client.post(f"{orders}/writes", json=upsert({"id": 2, "note": "late"}))
    service.work()
    return orders


def choices(root: PageElement) -> list[str]:
    ranges = root.one("nav", aria_label="Range of time").all("a", aria_current="true")
    return [each.text for each in ranges]


@pytest.mark.parametrize("path", RANGED)
def test_pages_offer_ranges_and_keep_the_chosen_one(two_days: str, visitor: httpx2.Client, path: str) -> None:
    root = page(visitor, f"{path}?range=24h")
    assert choices(root) == ["24 h"]
    assert root.one("nav", aria_label="Range of time").link("7 d") == f"{path}?range=7d"
    pages = root.one("nav", aria_label="Pages").all("a")
    assert len(pages) == 13
    assert all(each.attributes["href"].endswith("?range=24h") for each in pages)
    assert root.one("form", role="search", action="/console/search").one("input", name="range")
    assert choices(page(visitor, path)) in ([], ["all"], ["24 h"], ["31 d"])


@pytest.mark.parametrize("path", [f"{DATASET}/schema", f"{DATASET}/quarantine", "/console/keys"])
def test_other_pages_keep_the_range_in_their_links(orders: str, visitor: httpx2.Client, path: str) -> None:
    root = page(visitor, f"{path}?range=7d")
    assert not root.all("nav", aria_label="Range of time")
    assert root.one("nav", aria_label="Pages").link("Jobs") == "/console/jobs?range=7d"
    if path.startswith(DATASET):
        tabs = root.one("nav", aria_label="Pages of the dataset")
        assert tabs.link("Timeline") == f"{DATASET}/timeline?range=7d"


def test_a_range_selects(two_days: str, visitor: httpx2.Client) -> None:
    for suffix, rows in (("", 2), ("?range=7d", 2), ("?range=24h", 1)):
        timeline = page(visitor, f"{DATASET}/timeline{suffix}")
        assert len(timeline.one("table", class_="list").rows()[1:]) == rows
        jobs = page(visitor, f"/console/jobs{suffix}")
        assert len(jobs.one("table", class_="list").rows()[1:]) == rows
        changes = page(visitor, f"{DATASET}/changes{suffix}").one("table", id="changes")
        assert len([each for each in changes.all("tr") if "id" in each.attributes]) == rows
    assert "last 168 h" in page(visitor, "/console?range=7d").text
    usage = page(visitor, "/console/usage?range=24h")
    assert len(usage.all("details", class_="as-table")[0].rows()) == 1 + 2


def test_an_audit_of_a_range_begins_with_it(
    two_days: str, visitor: httpx2.Client, client: httpx2.Client
) -> None:
    root = page(visitor, "/console/audit?range=1h")
    assert root.one("input", name="since_time").attributes["value"]
    assert root.one("table").rows()[1:]
    assert "No entry" in page(visitor, "/console/audit?range=1h&until_time=2020-01-01T00:00").text
    assert page(visitor, "/console/audit").one("input", name="since_time").attributes["value"] == ""


def test_a_form_leads_to_a_page_with_the_range(orders: str, visitor: httpx2.Client) -> None:
    root = page(visitor, f"{DATASET}/settings?range=7d")
    done = submit(visitor, root, f"{DATASET}/settings", description="All orders")
    assert done.headers["location"] == f"{DATASET}/settings?range=7d"


@pytest.mark.parametrize("value", ["yesterday", "0h", "24", "99999d", "<b>", "1h" * 2_000])
def test_what_is_no_range_is_refused_where_it_has_a_meaning(
    orders: str, visitor: httpx2.Client, value: str
) -> None:
    root = page(visitor, f"/console/jobs?range={value}", status=400)
    assert "expected minutes, hours or days" in root.one("div", role="alert").text
    assert root.one("nav", aria_label="Pages").link("Usage") == "/console/usage"
    assert page(visitor, f"{DATASET}/schema?range={value}")
