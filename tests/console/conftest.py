"""Pages in a headless Chromium, on a service that is served from this process.

Without a Chromium these tests are skipped, and the reason names what brings it.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response

from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.chromium import Chromium, ChromiumMissing
from tests.support.console_pictures import cookies_of, launched
from tests.support.console_tenant import ConsoleTenant, empty, populated, restricted
from tests.support.postgres import TestServer
from tests.support.receiver import receiving
from tests.support.server_fixtures import fresh_service
from tests.support.service import Service

WIDE: Final = 1_440
_HEIGHT: Final = 900
HTML_BYTES_MAX: Final = 100_000
SCRIPT_BYTES_MAX: Final = 60_000
# What stands out of its box, and what is cut by it. Texts for screen readers alone are 1 px wide.
_FAULTS_OF_LAYOUT: Final = """() => {
  const faults = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) {
    const wide = [...document.body.querySelectorAll("*")].filter((each) => {
      const scrolls = each.parentElement.closest(".wide, .code, pre");
      return scrolls === null && each.getBoundingClientRect().right > width + 0.5;
    });
    faults.push(`scrolls sideways (${document.documentElement.scrollWidth} px): ` +
      wide.slice(0, 5).map((each) => each.outerHTML.slice(0, 120)).join(" | "));
  }
  for (const each of document.body.querySelectorAll("*")) {
    const style = getComputedStyle(each);
    const cut = (value) => value === "hidden" || value === "clip";
    if (each.clientWidth <= 1 || !each.textContent.trim() || style.textOverflow === "ellipsis") continue;
    if ((cut(style.overflowX) && each.scrollWidth > each.clientWidth + 1) ||
        (cut(style.overflowY) && each.scrollHeight > each.clientHeight + 1)) {
      faults.push("cut text: " + each.outerHTML.slice(0, 160));
    }
  }
  return faults;
}"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser. Of a module: while it runs, its thread has an event loop, which other tests could not start."""
    try:
        here = Chromium.here()
    except ChromiumMissing as missing:
        pytest.skip(str(missing))
    with launched(here) as browser:
        yield browser


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """A service of these tests alone: their tenant has a worker that is registered and does not exist."""
    with fresh_service(postgres, redis) as running:
        yield running


@pytest.fixture(scope="module")
def tenants(service: Service, chromium: Browser) -> Iterator[dict[str, ConsoleTenant]]:
    """A tenant that has everything, the same as a key with grants shows it, one without anything, one without rows."""
    with receiving() as receiver:
        everything = populated(service, "plant", receiver)
        yield {
            "data": everything,
            "empty": empty(service, "bare"),
            "no rows": empty(service, "first-steps", "nothing"),
            "grants": restricted(service, everything),
        }


@dataclass
class Tab:
    """A page of the browser, and what went wrong in it."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._message)
        self.page.on("pageerror", lambda error: self.faults.append(f"error of the script: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._response)
        self.page.on("dialog", self._dialog)

    def open(self, address: str) -> Response:
        """Loads an address of the service."""
        response = self.page.goto(f"{self.url}{address}", wait_until="load")
        assert response is not None
        return response

    def layout(self) -> list[str]:
        """What stands out of the page, and texts that are cut."""
        faults: list[str] = self.page.evaluate(_FAULTS_OF_LAYOUT)
        return faults

    def violations(self) -> list[str]:
        """What the rules of axe refuse."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']} ({each['help']}): {node['html'][:160]} {node['failureSummary'][-200:]}"
            for each in found
            for node in each["nodes"][:3]
        ]

    def _message(self, message: ConsoleMessage) -> None:
        # The browser reports each response of 400 and above; `_response` judges these.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.faults.append(f"{message.type} in the console: {message.text}")

    def _failed(self, request: Request) -> None:
        # A page that is left ends its streams.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"{request.url} failed: {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 500 or (
            response.status >= 400 and not response.request.is_navigation_request()
        ):
            self.faults.append(f"{response.url} has status {response.status}")

    def _dialog(self, dialog: Any) -> None:
        if dialog.type == "alert":
            self.faults.append(f"an alert: {dialog.message}")
        dialog.accept()


NewTab = Callable[..., Tab]


@pytest.fixture(scope="module")
def sessions(chromium: Browser, service: Service) -> Callable[[ConsoleTenant], Any]:
    """The cookies of a session with the key of a tenant: one sign-in for each."""
    stored: dict[str, Any] = {}

    def cookies(tenant: ConsoleTenant) -> Any:
        if tenant.api_key not in stored:
            stored[tenant.api_key] = cookies_of(chromium, service, tenant)
        return stored[tenant.api_key]

    return cookies


@pytest.fixture
def new_tab(
    chromium: Browser, service: Service, sessions: Callable[[ConsoleTenant], Any]
) -> Iterator[NewTab]:
    """Makes tabs in which a tenant is signed in."""
    contexts: list[BrowserContext] = []

    def make(tenant: ConsoleTenant, *, width: int = WIDE, scheme: Any = "light", scripts: bool = True) -> Tab:
        context = chromium.new_context(
            viewport={"width": width, "height": _HEIGHT}, color_scheme=scheme, java_script_enabled=scripts
        )
        contexts.append(context)
        context.add_cookies(sessions(tenant))
        context.set_default_timeout(10_000)
        return Tab(context.new_page(), service.url)

    yield make
    for context in contexts:
        context.close()


def compressed_bytes(content: bytes) -> int:
    """The size of a response as most browsers get it."""
    return len(gzip.compress(content, 6))
