"""Names of versions: savepoints and tags."""

from __future__ import annotations

import re
from typing import Final

from app.format.errors import FieldError, InvalidRequest

# Nothing that could be taken for a version itself.
_NAME: Final = re.compile(r"(?!\d+$)[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def check_version_name(name: str) -> None:
    """Raises InvalidRequest for a name that no version can have."""
    if not _NAME.fullmatch(name):
        detail = (
            "expected 1–128 letters, digits, `_`, `.` and `-`, not digits alone, beginning with no `.` or `-`"
        )
        raise InvalidRequest(
            f"{name!r} is no name for a version", [FieldError(pointer="/name", detail=detail)]
        )
