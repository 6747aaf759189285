"""Writes the page of problems, by their types, with the causes of each in `problem-causes.md`.

python -m tests.docs.troubleshooting > docs/troubleshooting.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Final

from app.http.problems import error_classes
from app.process.api import STATUSES

_PAGE: Final = Path(__file__).with_name("troubleshooting.md")
_CAUSES: Final = Path(__file__).with_name("problem-causes.md")
_ERRORS: Final = Path(__file__).parents[2] / "docs" / "errors.md"
_FACTS: Final = re.compile(r"\s*\(?\bFacts?: .*$")
_HEADINGS: Final = {
    "wrong requests": (400, 405, 406, 408, 413, 414, 415, 416, 428, 431),
    "keys, scopes and grants": (401, 403),
    "what is not there, or no longer": (404, 410),
    "what is in the way": (409, 412),
    "values and definitions that cannot be": (422,),
    "limits": (429,),
    "the service, and what it depends on": (500, 501, 502, 503, 507),
}


def _cells(document: Path) -> Iterator[list[str]]:
    """The cells of the lines of tables that begin with a code of a problem."""
    for line in document.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| `(?:/problems/)?[a-z-]+` \|", line):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def causes() -> dict[str, tuple[str, str]]:
    """By code: the likely causes, and how to find out."""
    return {code.strip("`"): (likely, find_out) for code, likely, find_out in _cells(_CAUSES)}


def _remedies() -> dict[str, str]:
    """By code: what to do."""
    return {cells[0].strip("`").removeprefix("/problems/"): cells[-1] for cells in _cells(_ERRORS)}


def _meanings() -> dict[str, str]:
    """By code: the first paragraph of the class that states it, without its facts."""
    meanings: dict[str, str] = {}
    for error in error_classes():
        if "code" in vars(error):
            paragraph = " ".join(cleandoc(error.__doc__ or "").split("\n\n")[0].split())
            meanings[error.code] = _FACTS.sub("", paragraph).rstrip()
    return meanings


def _tables() -> Iterator[str]:
    likely, remedies, meanings = causes(), _remedies(), _meanings()
    for heading, statuses in _HEADINGS.items():
        yield f"### {heading[0].upper()}{heading[1:]}\n"
        yield "| problem | means | likely causes | how to find out | what to do |"
        yield "|---|---|---|---|---|"
        for code, status in sorted(STATUSES.items(), key=lambda item: (item[1], item[0])):
            if status in statuses:
                cells = (f"`{code}` {status}", meanings[code], *likely[code], remedies[code])
                yield f"| {' | '.join(cells)} |"
        yield ""


def published() -> str:
    """The text of docs/troubleshooting.md."""
    tables = "\n".join(_tables()).rstrip()
    return _PAGE.read_text(encoding="utf-8").replace("<!-- problems -->", tables)


if __name__ == "__main__":
    sys.stdout.write(published())
