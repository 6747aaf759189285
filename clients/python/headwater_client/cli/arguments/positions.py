"""Positions in a feed: an offset, a name, a time, a length of time, or a version."""

from __future__ import annotations

from typing import Any, Final

from headwater_client.cli.arguments.moments import length, moment, now
from headwater_client.cli.failure import CommandError, ExitCode

_NAMED: Final = ("earliest", "now", "snapshot")
_EXPECTED: Final = (
    "expected an offset, earliest, now, snapshot, a version such as v12, a time such as 2026-11-29 or "
    "2026-11-29T10:00:00Z (UTC by default), or a length such as 10m"
)


def position(flag: str, text: str) -> dict[str, Any]:
    """The position as one of the options `since`, `since_version` and `since_time`. Raises CommandError."""
    if text.isdecimal():
        return {"since": int(text)}
    if text.startswith("v") and text[1:].isdecimal():
        return {"since_version": int(text[1:])}
    if text in _NAMED:
        return {"since": text}
    back = length(text)
    try:
        return {"since_time": moment(text) if back is None else now() - back}
    except ValueError:
        raise CommandError(f"{flag} {text}: {_EXPECTED}", ExitCode.USAGE) from None
