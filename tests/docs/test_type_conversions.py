"""The published table of types is the one that the service uses."""

from __future__ import annotations

from pathlib import Path

from tests.docs.type_conversions import published

DOCUMENT = Path(__file__).parents[2] / "docs" / "type-conversions.md"


def test_document_of_type_conversions_equals_the_table() -> None:
    again = "write it again: python -m tests.docs.type_conversions > docs/type-conversions.md"
    assert DOCUMENT.read_text(encoding="utf-8") == published(), again
