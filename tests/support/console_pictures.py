"""Pictures of all pages of the console, on a tenant that has everything: `make console-pictures`.

They are for looking at a page, not for comparing it: FOLDER/SCREEN/PAGE.png.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from playwright.sync_api import Browser, sync_playwright

from app.features.console.pages.all import PAGES
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.chromium import Chromium, ChromiumMissing
from tests.support.console_tenant import ConsoleTenant, empty, populated
from tests.support.postgres import TestServer
from tests.support.receiver import receiving
from tests.support.service import Service, running_service, settings_for

SCREENS: Final[Mapping[str, tuple[int, str]]] = {
    "light": (1_440, "light"),
    "dark": (1_440, "dark"),
    "narrow": (360, "light"),
    "narrow-dark": (360, "dark"),
}
"""Widths in pixels and colour schemes, by name."""
QUERIES: Final = {"/search": "?q=readings"}
"""What the address of a page needs besides its path."""
DOCUMENTED: Final[Mapping[str, str]] = {
    "home": "",
    "dataset": "/datasets/readings",
    "changes": "/datasets/readings/changes",
    "timeline": "/datasets/readings/timeline",
    "lineage": "/lineage",
    "service": "/service",
}
"""The pages whose pictures are in the documents, by the name of the picture."""
_HEIGHT: Final = 900


@contextmanager
def launched(chromium: Chromium) -> Iterator[Browser]:
    """The browser, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.path,
            args=["--no-sandbox", "--disable-dev-shm-usage"],
            env=dict(chromium.environment) or None,
        )
        yield browser
        browser.close()


def cookies_of(browser: Browser, service: Service, tenant: ConsoleTenant) -> Any:
    """The cookies of a new session with the key of a tenant."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{service.url}/console/sign-in")
    page.get_by_label("API key").fill(tenant.api_key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{service.url}/console")
    cookies = context.cookies()
    context.close()
    return cookies


@contextmanager
def own_service() -> Iterator[Service]:
    """A service in this process, on servers and files of its own."""
    with (
        TemporaryDirectory(prefix="headwater-pictures-") as directory,
        TestServer.running(Path(directory) / "postgres") as postgres,
        EmbeddedValkey(Path(directory) / "redis") as redis,
        postgres.fresh_database() as name,
        running_service(
            settings_for(
                postgres.application_url(name), postgres.admin_url(name), redis.url, Path(directory) / "data"
            )
        ) as service,
    ):
        yield service


def write_pictures(folder: Path, browser: Browser, service: Service, only: str) -> None:
    """Writes the pictures of the pages whose path contains `only`."""
    with receiving() as receiver:
        tenants = {"": populated(service, "plant", receiver), "empty-": empty(service, "bare", "nothing")}
    for prefix, tenant in tenants.items():
        cookies = cookies_of(browser, service, tenant)
        for screen, (width, scheme) in SCREENS.items():
            context = browser.new_context(
                viewport={"width": width, "height": _HEIGHT},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            context.add_cookies(cookies)
            page = context.new_page()
            for each in PAGES:
                if only not in each.path:
                    continue
                page.goto(service.url + tenant.address(each.path) + QUERIES.get(each.path, ""))
                name = each.path.strip("/").replace("/", "-").replace("{", "").replace(":str}", "") or "home"
                page.screenshot(path=folder / f"{prefix}{screen}" / f"{name}.png", full_page=True)
            context.close()


def write_documented(folder: Path, browser: Browser, service: Service) -> None:
    """Writes the pictures of the documents: the upper part of each page."""
    with receiving() as receiver:
        tenant = populated(service, "plant", receiver)
    context = browser.new_context(viewport={"width": 1_320, "height": 825})
    context.add_cookies(cookies_of(browser, service, tenant))
    page = context.new_page()
    for name, path in DOCUMENTED.items():
        page.goto(f"{service.url}/console{path}")
        page.screenshot(path=folder / f"{name}.png")
    context.close()


def main() -> int:
    """The command. Returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".console-pictures"))
    parser.add_argument("--only", default="", help="pages whose path contains this")
    parser.add_argument("--documents", action="store_true", help="the pictures of docs/pictures instead")
    chosen = parser.parse_args()
    try:
        chromium = Chromium.here()
    except ChromiumMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    with own_service() as service, launched(chromium) as browser:
        if chosen.documents:
            write_documented(chosen.folder, browser, service)
        else:
            write_pictures(chosen.folder, browser, service, chosen.only)
    print(f"the pictures are in {chosen.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
