"""Columns as a text: `id:int64,price:decimal(9,2)`."""

from __future__ import annotations

import re
from typing import Final

from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.models import CreateField

_NAME: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*:\s*")
_OPEN, _CLOSE = "(<", ")>"


def columns_of(text: str, place_of: str = "--schema") -> tuple[CreateField, ...]:
    """The columns that a text lists: names and types, those of other characters in backticks.

    `place_of`: what has the text, for errors. Raises CommandError.
    """
    found: list[CreateField] = []
    place = 0
    while place < len(text):
        match = _NAME.match(text, place)
        end = _end_of_type(text, match.end()) if match is not None else place
        kind = text[match.end() : end].strip() if match is not None else ""
        if match is None or not kind:
            raise CommandError(
                f"{place_of} {text}: expected names and types, such as id:int64,price:decimal(9,2), "
                f"at {text[place:]!r}",
                ExitCode.USAGE,
            )
        name = match[2] if match[1] is None else match[1].replace("``", "`")
        found.append(CreateField(name=name, type=kind))
        place = end + 1
    return tuple(found)


def _end_of_type(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in _OPEN) - (text[place] in _CLOSE)
        if text[place] == "," and depth == 0:
            return place
    return len(text)
