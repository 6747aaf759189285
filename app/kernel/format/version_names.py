"""Names of versions: savepoints and tags."""

from __future__ import annotations

import re
from typing import Final

from app.kernel.format.errors import FieldError, InvalidRequest

# A name must not be mistakable for a version number.
_NAME: Final = re.compile(r"(?!\d+$)[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def check_version_name(name: str) -> None:
    """Raises InvalidRequest for an invalid name of a version."""
    if not _NAME.fullmatch(name):
        detail = "expected 1–128 letters, digits, `_`, `.` and `-`, not digits only, and no `.` or `-` at the start"
        raise InvalidRequest(
            f"{name!r} is not a valid name of a version", [FieldError(pointer="/name", detail=detail)]
        )
