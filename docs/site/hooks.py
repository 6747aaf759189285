"""Makes pages of the documents that are written for the repository: `make docs` runs this within mkdocs.

The README of the repository is the page `start.md`. Files of the repository that are no documents are named, not
linked, since the site is complete without a clone.
"""

import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
START = "start.md"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_CODE_WITH_BAR = re.compile(r"`[^`\n]*\\\|[^`\n]*`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the README of the repository."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(\]\(|src(?:set)?=\")docs/", r"\1", text)
    files.append(File.generated(config, START, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """The text of a page, with the links that the site has."""
    folder = PurePosixPath(page.file.src_uri).parent

    def link(found: re.Match[str]) -> str:
        text, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        place = _plain(folder / path)
        if place == "../README.md":
            return f"[{text}]({'../' * len(folder.parts)}{START}{'#' * bool(anchor)}{anchor})"
        return found[0] if files.get_file_from_path(place) else text

    parts = _FENCE.split(markdown)
    for at in range(0, len(parts), 2):
        # In a cell, a bar inside of code needs no backslash.
        parts[at] = _CODE_WITH_BAR.sub(lambda found: found[0].replace("\\|", "|"), _LINK.sub(link, parts[at]))
    return "".join(parts)


def _plain(path: PurePosixPath) -> str:
    """The path without `x/..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
