"""The form of ids."""

from __future__ import annotations

import uuid
from typing import Final

PATTERN_END: Final = r"$(?!\n)"
"""The end of a pattern that OpenAPI shows: for Python alone, `$` is also before a final newline."""


def is_uuid(text: str) -> bool:
    """Whether `text` has the form of an id (names of datasets may not have it)."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
