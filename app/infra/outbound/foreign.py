"""Texts of foreign servers in messages of this service."""

from __future__ import annotations

from typing import Final

CHARACTERS_MAX: Final = 300


def foreign_text(value: object, characters_max: int = CHARACTERS_MAX) -> str:
    """What a server has sent, or an error that quotes it, on one line of printable characters.

    Bytes are read as UTF-8. A character that cannot be printed is replaced, such as the NUL that Postgres stores in no
    text.
    """
    # No more is kept than is shown, whatever the length; a character has at most four bytes.
    if isinstance(value, bytes):
        text = value[: 8 * characters_max].decode(errors="replace")
    else:
        text = str(value)[: 2 * characters_max]
    text = " ".join(text.split())
    printable = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return printable if len(printable) <= characters_max else f"{printable[: characters_max - 1]}…"
