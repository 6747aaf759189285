"""Every page, whatever its reader has: nothing goes wrong in the browser, nothing is cut, all can read and reach it."""

from __future__ import annotations

import pytest

from app.features.console.page import ConsolePage
from app.features.console.pages.all import PAGES
from app.features.console.rendering import STATIC, assets
from tests.console.conftest import HTML_BYTES_MAX, SCRIPT_BYTES_MAX, NewTab, compressed_bytes
from tests.support.console_pictures import QUERIES, SCREENS
from tests.support.console_tenant import ConsoleTenant
from tests.support.shares import share

TEMPLATES = STATIC.parent / "templates"
# Without those that scripts load as parts of others.
_WHOLE = [page for page in PAGES if "{% extends" in (TEMPLATES / page.template).read_text()]
# On a narrow screen, a value of a list has no other head. Links and buttons say what they are.
_WITHOUT_HEAD = ".blocks td:not(:first-child, [data-label], :empty, :has(a, button))"
_STATES = ("data", "empty", "grants")


def _name(page: ConsolePage) -> str:
    return page.path or "home"


@share(20)
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("state", _STATES)
@pytest.mark.parametrize("page", _WHOLE, ids=_name)
def test_page(
    page: ConsolePage, state: str, screen: str, tenants: dict[str, ConsoleTenant], new_tab: NewTab
) -> None:
    width, scheme = SCREENS[screen]
    tenant = tenants["no rows" if state == "empty" and "{dataset:" in page.path else state]
    tab = new_tab(tenant, width=width, scheme=scheme)
    response = tab.open(tenant.address(page.path) + QUERIES.get(page.path, ""))
    assert response.status in ((200, 403, 404) if state != "data" else (200,)), tab.page.inner_text("main")
    assert len(response.body()) <= HTML_BYTES_MAX
    assert tab.page.locator("h1").count() == 1
    assert tab.page.title() != "taken"
    assert tab.faults == []
    assert tab.layout() == []
    assert tab.page.locator(_WITHOUT_HEAD).all_text_contents() == []
    assert tab.violations() == []


@pytest.mark.parametrize("width", [1_280, 1_440])
def test_navigation_is_one_line(width: int, tenants: dict[str, ConsoleTenant], new_tab: NewTab) -> None:
    tab = new_tab(tenants["data"], width=width)
    tab.open("/console")
    links = tab.page.locator("nav.main a, .account > summary, .search input").all()
    middles = [box["y"] + box["height"] / 2 for box in (each.bounding_box() for each in links) if box]
    assert len(middles) > 12
    assert max(middles) - min(middles) < 10


@share(20)
@pytest.mark.parametrize("page", _WHOLE, ids=_name)
def test_page_can_be_read_without_scripts(
    page: ConsolePage, tenants: dict[str, ConsoleTenant], new_tab: NewTab
) -> None:
    tenant = tenants["data"]
    address = tenant.address(page.path) + QUERIES.get(page.path, "")
    texts = []
    for scripts in (False, True):
        tab = new_tab(tenant, scripts=scripts)
        tab.open(address)
        texts.append([each.split("\n")[0] for each in tab.page.locator("h1, h2, th").all_inner_texts()])
    assert texts[0], "a page without a heading"
    assert set(texts[0]) >= set(texts[1])


def test_scripts_are_small() -> None:
    size = sum(compressed_bytes(content) for name, content in assets().items() if name.endswith(".js"))
    assert size <= SCRIPT_BYTES_MAX
