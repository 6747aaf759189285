"""What an error says about a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from app.codecs.faults import shown

_NAMES_SHOWN: Final = 5
_CHARACTERS_SHOWN: Final = 40


def similar_names(name: str, known: Iterable[str]) -> list[str]:
    """Those of the known names that differ by case only, or else by little."""
    names = list(dict.fromkeys(known))
    same = [other for other in names if other.casefold() == name.casefold()]
    return same or get_close_matches(name, names, n=_NAMES_SHOWN)


def no_such(kind: str, name: str, similar: Sequence[str]) -> str:
    """The reason why a name is refused."""
    hint = f" (did you mean {' or '.join(map(shown, similar))}?)" if similar else ""
    return f"there is no {kind} {shown(name)}{hint}"


def listed(names: Iterable[str]) -> str:
    """The first of some names, as an expectation."""
    different = list(dict.fromkeys(names))
    first = [shown(name) for name in different[:_NAMES_SHOWN]]
    return ", ".join([*first, "…"] if len(different) > _NAMES_SHOWN else first)


def name_for_string(text: str, at: int, name: str) -> tuple[str, str]:
    """Why a name at a place where a string was probably meant is refused, and the string that is expected."""
    how = "in double quotes" if text[at] == '"' else "without single quotes"
    cut = name if len(name) <= _CHARACTERS_SHOWN else f"{name[:_CHARACTERS_SHOWN]}…"
    literal = "'" + cut.replace("'", "''") + "'"
    return f"{cut} {how} is the name of a column, and strings take single quotes", literal
