"""The site of the documents lists all of them, loads nothing from other hosts, and can be made."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
MKDOCS: Final = ROOT / ".venv-docs" / "bin" / "mkdocs"
START: Final = "start.md"
"""The README of the repository, a page that docs/site/hooks.py adds."""


class _Loader(yaml.SafeLoader):
    """Reads the configuration without the Python objects in it."""


_LOADER: Final = _Loader
_LOADER.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def configuration() -> dict[str, Any]:
    return yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _LOADER)


def pages(nav: Any) -> Iterator[str]:
    """The documents of a navigation."""
    match nav:
        case str():
            yield nav
        case dict():
            for each in nav.values():
                yield from pages(each)
        case list():
            for each in nav:
                yield from pages(each)


def test_navigation_lists_every_document_once() -> None:
    listed = sorted(pages(configuration()["nav"]))
    documents = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    records = {each for each in documents if re.match(r"decisions/0\d", each)}
    assert listed == sorted(documents - records | {START})


def test_sections_are_those_of_the_list_of_documents() -> None:
    sections = [name for each in configuration()["nav"] for name in each]
    headings = re.findall(r"^## (.+)$", (DOCS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections == ["Start", *headings]


def test_wrong_links_fail_and_fonts_are_those_of_the_system() -> None:
    site = configuration()
    assert site["strict"] is True
    assert site["theme"]["font"] is False
    assert set(site["validation"]["links"].values()) == {"warn"}
    assert site["plugins"] == ["search"]


@pytest.mark.skipif(not MKDOCS.exists(), reason="`make docs` has not made its environment here")
def test_site_is_made_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    subprocess.run([MKDOCS, "build", "--quiet", "--site-dir", tmp_path], cwd=ROOT, check=True)
    made = sorted(tmp_path.rglob("*.html"))
    assert tmp_path / "start.html" in made
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=\"?https?:|<link[^>]*stylesheet[^>]*href=\"?https?:"
    )
    for page in made:
        assert not loaded.search(page.read_text(encoding="utf-8")), page.name
