"""Positions that a user may move a source to."""

from __future__ import annotations

from typing import Any

import pytest

from app.features.sources.errors import InvalidSource
from app.features.sources.kinds.positions import check_position

LARGEST = 2**63 - 1
VALID: list[tuple[str, dict[str, Any]]] = [
    ("files", {}),
    ("dataset", {"offset": LARGEST}),
    ("http", {"cursor": "400", "read": 1}),
    ("http", {"cursor": None, "read": 0}),
    ("http", {"cursor": -1}),
    ("sql", {"watermark": "2026-11-23"}),
    ("sql", {"digest": "5:17"}),
    ("kafka", {"0": 0, "12": LARGEST}),
]
INVALID: list[tuple[str, dict[str, Any], str]] = [
    ("files", {"files": 12, "last": "2026-11-23.ndjson"}, "/position"),
    ("dataset", {"offset": LARGEST + 1}, "/position/offset"),
    ("dataset", {"read": 1}, "/position/read"),
    ("http", {"read": True}, "/position/read"),
    ("http", {"cursor": 10**26}, "/position/cursor"),
    ("http", {"cursor": ["a"]}, "/position/cursor"),
    ("sql", {"watermark": 5}, "/position/watermark"),
    ("kafka", {"0": True}, "/position"),
    ("kafka", {"first": 1}, "/position"),
    ("kafka", {"0": -1}, "/position"),
]


@pytest.mark.parametrize(("kind", "position"), [*VALID, *((kind, {}) for kind, _ in VALID)])
def test_position_of_the_kind_is_accepted(kind: str, position: dict[str, Any]) -> None:
    check_position(kind, position)


@pytest.mark.parametrize(("kind", "position", "pointer"), INVALID)
def test_other_position_is_refused_with_its_member(kind: str, position: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidSource) as refused:
        check_position(kind, position)
    assert refused.value.facts["errors"][0]["pointer"].startswith(pointer)
