"""docs/troubleshooting.md has each type of problem, with its causes and how to find out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from app.process.api import STATUSES
from tests.docs.troubleshooting import causes, published

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
_LINE: Final = re.compile(r"^\| `([a-z-]+)` (\d+) \| (.+) \| (.+) \| (.+) \| (.*) \|$", re.MULTILINE)


def test_document_equals_the_problems_of_the_code() -> None:
    again = "write it again: python -m tests.docs.troubleshooting > docs/troubleshooting.md"
    assert DOCUMENT.read_text(encoding="utf-8") == published(), again


def test_every_code_has_causes_and_no_other() -> None:
    assert causes().keys() == STATUSES.keys()


def test_every_code_has_one_line_with_its_status() -> None:
    lines = [(code, int(status)) for code, status, *_ in _LINE.findall(DOCUMENT.read_text(encoding="utf-8"))]
    assert len(lines) == len(STATUSES)
    assert dict(lines) == STATUSES


@pytest.mark.parametrize("code", STATUSES)
def test_causes_and_how_to_find_out_are_sentences(code: str) -> None:
    for text in causes()[code]:
        assert text.endswith((".", "?"))
