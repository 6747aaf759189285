"""Ten tasks of people who have read nothing, each within three clicks of the first page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from playwright.sync_api import Locator

from tests.console.conftest import NewTab, Tab
from tests.support.console_tenant import ConsoleTenant
from tests.support.service import Service
from tests.support.shares import share

_CLICKS_MAX: Final = 3


@dataclass
class Person:
    """Somebody at the first page, whose clicks are counted."""

    tab: Tab
    clicks: int = 0

    def click(self, role: str, name: str | re.Pattern[str], *, within: str = "body") -> None:
        """Clicks on the first link or button that has this name."""
        self.press(self.tab.page.locator(within).get_by_role(role, name=name).first)  # type: ignore[arg-type]

    def press(self, target: Locator) -> None:
        """Clicks on it, and waits for the page that this loads."""
        self.clicks += 1
        assert self.clicks <= _CLICKS_MAX, f"more than {_CLICKS_MAX} clicks"
        target.click()
        self.tab.page.wait_for_load_state("load")

    def search(self, text: str) -> None:
        """Types into the search of all pages."""
        field = self.tab.page.locator("header .search input")
        field.fill(text)
        field.press("Enter")
        self.tab.page.wait_for_url("**/console/search?*")

    @property
    def text(self) -> str:
        """What the page says, without its frame."""
        return self.tab.page.inner_text("main")


@pytest.fixture
def person(service: Service, tenants: dict[str, ConsoleTenant], new_tab: NewTab) -> Iterator[Person]:
    """A reader with all rights, while a worker works. At the end nothing has gone wrong in the browser."""
    tab = new_tab(tenants["data"])
    tab.open("/console")
    with service.working():
        yield Person(tab)
    assert tab.faults == []


def late_dataset(person: Person) -> None:
    """Which dataset is late, and why?"""
    assert "Why alarms is late" in person.text
    person.click("link", "night-files", within="main")
    assert "part-1.ndjson" in person.text


def row_of_yesterday(person: Person) -> None:
    """What did key 42 look like yesterday at noon?"""
    person.search("orders 42")
    person.press(person.tab.page.locator("main tr", has_text="row").get_by_role("link").first)
    person.click("link", re.compile("yesterday"), within="main")
    assert "no row" in person.text
    assert "paid" in person.text


def deleted_row(person: Person) -> None:
    """Who deleted order 13?"""
    person.click("link", "orders", within="main table")
    person.click("link", re.compile("^Changes$"))
    person.tab.page.get_by_role("combobox", name="Changes").select_option("removed")
    person.click("button", "Show", within="main")
    assert "delete by key plant-loader" in person.text
    assert re.search(r"−R\s+13\b", person.text)


def undone_write(person: Person) -> None:
    """How is the last write to the orders undone?"""
    person.click("link", "orders", within="main table")
    person.click("link", re.compile("^Changes$"))
    person.click("link", re.compile("^Undo"))
    assert person.tab.page.get_by_role("button", name=re.compile("^Undo v")).count() == 1


def paused_webhook(person: Person) -> None:
    """Why is the webhook paused?"""
    person.click("link", "Webhooks")
    person.press(person.tab.page.locator("main tr", has_text="paused").get_by_role("link").first)
    assert "given up" in person.text
    assert "500" in person.text


def repaired_record(person: Person) -> None:
    """How is a bad record repaired and sent on?"""
    person.click("link", re.compile("3 records in quarantine"))
    field = person.tab.page.get_by_role("textbox", name="taken").first
    field.fill("2026-11-28T12:00:00Z")
    person.press(
        person.tab.page.locator("section.record").first.get_by_role(
            "button", name=re.compile("^Redrive record")
        )
    )
    assert "Redriven" in person.text


def lagging_consumer(person: Person) -> None:
    """Which consumer is behind, since when?"""
    person.click("link", "orders", within="main table")
    person.click("link", re.compile("^Consumers$"))
    row = person.tab.page.locator("main tr", has_text="warehouse").first.inner_text()
    assert "61" in row
    assert "ago" in row


def dropped_column(person: Person) -> None:
    """What breaks if the column total is dropped?"""
    person.click("link", "orders", within="main table")
    person.click("link", "Schema")
    person.press(
        person.tab.page.locator("main tr", has_text="total").get_by_role("link", name="What breaks").first
    )
    assert "This breaks" in person.text
    assert "customers" in person.text


def slow_dataset(person: Person) -> None:
    """Why is the dataset slow to read?"""
    person.click("link", "readings", within="main table")
    person.click("link", "Layout")
    assert "What reads must merge" in person.text


def full_disk(person: Person) -> None:
    """How full is the disk, and what fills it?"""
    person.click("link", "Service")
    assert "What fills it" in person.text
    assert re.search(r"\d B free|[kMGT]B free", person.text)


_TASKS: Final[tuple[Callable[[Person], None], ...]] = (
    late_dataset,
    row_of_yesterday,
    deleted_row,
    undone_write,
    paused_webhook,
    repaired_record,
    lagging_consumer,
    dropped_column,
    slow_dataset,
    full_disk,
)


@share(3)
@pytest.mark.parametrize("task", _TASKS, ids=lambda task: task.__name__)
def test_task(task: Callable[[Person], None], person: Person) -> None:
    task(person)


def test_changes_appear_by_themselves(
    service: Service, tenants: dict[str, ConsoleTenant], new_tab: NewTab
) -> None:
    tab = new_tab(tenants["data"])
    tab.open("/console/datasets/orders/changes")
    with service.client(tenants["data"].api_key) as client:
        row = {"id": 1_000_001, "customer": "umbrella", "status": "placed", "total": "9.00"}
        body = {"operation": "upsert", "source": {"kind": "rows", "rows": [row]}}
        assert client.post("/datasets/orders/writes", json=body).status_code == 202
        with service.working():
            tab.page.get_by_text("umbrella").first.wait_for()
        version = client.get("/datasets/orders").json()["version"]
    head = tab.page.locator("header.dataset")
    assert f"v{version}" in head.inner_text()
    assert "rows as of" in head.inner_text()
    assert tab.faults == []


def test_a_job_ends_on_its_page(service: Service, tenants: dict[str, ConsoleTenant], new_tab: NewTab) -> None:
    with service.client(tenants["data"].api_key) as client:
        row = {"id": 1_000_002, "customer": "umbrella", "status": "placed", "total": "9.00"}
        body = {"operation": "upsert", "source": {"kind": "rows", "rows": [row]}}
        job = client.post("/datasets/orders/writes", json=body).json()["id"]
    tab = new_tab(tenants["data"])
    tab.open(f"/console/jobs/{job}")
    assert "succeeded" not in tab.page.inner_text("main")
    with service.working():
        tab.page.locator("main").get_by_text("succeeded").first.wait_for()
    assert tab.faults == []
