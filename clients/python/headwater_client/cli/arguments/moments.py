"""Times on the command line: `2026-11-29`, `2026-11-29T10:00:00Z`, or a length such as `10m`, counted from now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final

_LENGTH: Final = re.compile(r"(\d+)(s|m|h|d|w)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_EXPECTED: Final = (
    "expected a time such as 2026-11-29, 2026-11-29T10:00:00Z (UTC by default), or a length such as 10m"
)


def length(text: str) -> timedelta | None:
    """The length of time, such as 90s, 10m, 12h, 7d or 2w; None for another text."""
    found = _LENGTH.fullmatch(text)
    return None if found is None else timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


def moment(text: str) -> datetime:
    """A time, which is UTC without an offset. Raises ValueError."""
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        raise ValueError(_EXPECTED) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def now() -> datetime:
    """The time."""
    return datetime.now(timezone.utc)


def instant(kind: Any, tokens: Sequence[Any]) -> datetime:
    """The value of a flag for a time to come: a length is added to now. Raises ValueError."""
    del kind
    [token] = tokens
    ahead = length(token.value)
    return moment(token.value) if ahead is None else now() + ahead


def instant_before(kind: Any, tokens: Sequence[Any]) -> datetime:
    """The value of a flag for a time that has passed: a length is subtracted from now. Raises ValueError."""
    del kind
    [token] = tokens
    back = length(token.value)
    return moment(token.value) if back is None else now() - back
