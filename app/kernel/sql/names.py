"""Messages about names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from app.kernel.codecs.faults import shown

_NAMES_SHOWN: Final = 5
_CHARACTERS_SHOWN: Final = 40


def no_such(kind: str, name: str, similar: Sequence[str]) -> str:
    """The reason why a name is rejected."""
    hint = f" (did you mean {' or '.join(map(shown, similar))}?)" if similar else ""
    return f"there is no {kind} {shown(name)}{hint}"


def listed(names: Iterable[str]) -> str:
    """The first of some names, as an expectation."""
    different = list(dict.fromkeys(names))
    first = [shown(name) for name in different[:_NAMES_SHOWN]]
    return ", ".join([*first, "…"] if len(different) > _NAMES_SHOWN else first)


def name_for_string(text: str, at: int, name: str) -> tuple[str, str]:
    """The reason why a name is rejected where a string was probably meant, and the string that is expected."""
    how = "in double quotes" if text[at] == '"' else "without single quotes"
    cut = name if len(name) <= _CHARACTERS_SHOWN else f"{name[:_CHARACTERS_SHOWN]}…"
    literal = "'" + cut.replace("'", "''") + "'"
    return f"{cut} {how} is the name of a column, and strings take single quotes", literal
