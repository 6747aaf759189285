"""The keyboard: rows are walked through, a page is reached by two keys, the search by one, the keys are listed."""

from __future__ import annotations

import pytest

from tests.console.conftest import NewTab, Tab
from tests.support.console_tenant import ConsoleTenant


@pytest.fixture
def datasets(tenants: dict[str, ConsoleTenant], new_tab: NewTab) -> Tab:
    """The list of datasets."""
    tab = new_tab(tenants["data"])
    tab.open("/console/datasets")
    return tab


def test_rows_are_walked_through_and_opened(datasets: Tab) -> None:
    keyboard, page = datasets.page.keyboard, datasets.page
    names = page.locator("main tbody tr").all_inner_texts()
    for key, number in (("j", 0), ("j", 1), ("j", 2), ("k", 1)):
        keyboard.press(key)
        assert page.locator("tr.selected").all_inner_texts() == [names[number]]
    keyboard.press("Enter")
    page.wait_for_url(f"{datasets.url}/console/datasets/{names[1].split()[0]}")
    assert datasets.faults == []


def test_two_keys_lead_to_a_page(datasets: Tab) -> None:
    datasets.open("/console")
    for key in "gd":
        datasets.page.keyboard.press(key)
    datasets.page.wait_for_url(f"{datasets.url}/console/datasets")


def test_a_key_leads_to_the_search_and_escape_out_of_it(datasets: Tab) -> None:
    keyboard, search = datasets.page.keyboard, datasets.page.locator("header .search input")
    keyboard.press("/")
    keyboard.type("orders")
    assert search.input_value() == "orders"
    keyboard.press("Escape")
    keyboard.press("j")
    assert datasets.page.locator("tr.selected").count() == 1


def test_a_key_lists_the_keys(datasets: Tab) -> None:
    datasets.page.keyboard.press("?")
    sheet = datasets.page.get_by_role("dialog")
    sheet.wait_for()
    assert "search" in sheet.inner_text().lower()
    datasets.page.keyboard.press("Escape")
    sheet.wait_for(state="detached")
    assert datasets.faults == []
