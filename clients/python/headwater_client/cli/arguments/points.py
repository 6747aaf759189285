"""Versions on the command line: a number, the name of a tag or savepoint, or a time."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from headwater_client.cli.arguments.moments import length, moment, now

Point = int | str | datetime
POINT_TEXT: Final = (
    "A version such as 12, the name of a tag, a time such as 2026-11-29 (UTC), or 1h for an hour ago."
)


def point(text: str) -> Point:
    """What a text means: a number, a time or a length of time, or else a name."""
    if text.isdecimal():
        return int(text)
    back = length(text)
    if back is not None:
        return now() - back
    try:
        return moment(text)
    except ValueError:
        return text
