"""The texts of values in a page of JSON, unchanged.

A decoder that skips values refuses a page for a lone surrogate in one of its records. Such a page is taken apart by one
that is slower, so that the record alone is at fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from app.kernel.codecs.faults import shown

_ABSENT: Final = msgspec.Raw(b"")
_RECORDS: Final = msgspec.json.Decoder(list[msgspec.Raw])
# Skips a value: the arrays in it are made, of numbers that are shared, and nothing else.
_SKIP: Final = json.JSONDecoder(object_pairs_hook=len, parse_int=len, parse_float=len)
_GAP: Final = re.compile(r"[ \t\r\n]*")
_NAMES_SHOWN: Final = 10
# Bytes that are not UTF-8 stay as they are: the decoder of rows names their record.
_CODEC: Final = ("utf-8", "surrogateescape")


class MissingMember(ValueError):
    """A page does not have a member. The text has those that are there."""


def member(content: bytes, path: str, *, required: bool = False) -> bytes | None:
    """The text of a member; None if it, or one on the way, is null or missing.

    `path`: names with a dot between them; the content itself without any. Raises ValueError, RecursionError for a text
    that has no members, MissingMember for a `required` one that is missing.
    """
    text, above = content, ""
    for name in path.split(".") if path else ():
        if _is_null(text):
            return None
        value = _value(text, name)
        if value is None:
            if required:
                raise _missing(text, f"{above}{name}", above)
            return None
        text, above = value, f"{above}{name}."
    return None if _is_null(text) else text


def elements(text: bytes, count_max: int) -> list[bytes] | None:
    """The texts of the elements of a list; None if there are more than `count_max`. Raises ValueError, RecursionError.

    Each element takes memory of its own, however short it is.
    """
    # Most lists have fewer commas, so that their elements need not be counted.
    if text.count(b",") >= count_max and any(
        number >= count_max for number, _ in enumerate(_scanned(text, "[]"))
    ):
        return None
    try:
        return [bytes(record) for record in _RECORDS.decode(text)]
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        try:
            return [value for _, value in _scanned(text, "[]")]
        except ValueError:
            raise error from None


@lru_cache(maxsize=64)
def _one_member(name: str) -> msgspec.json.Decoder[Any]:
    """Decodes one member of an object, and skips the others."""
    members = [("value", msgspec.Raw, _ABSENT)]
    return msgspec.json.Decoder(msgspec.defstruct("Member", members, rename={"value": name}))


def _value(text: bytes, name: str) -> bytes | None:
    """The text of a member of an object, the last one of its name; None if there is none."""
    try:
        value = _one_member(name).decode(text).value
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        try:
            return dict(_scanned(text, "{}")).get(name)
        except ValueError:
            raise error from None
    return None if value is _ABSENT else bytes(value)


def _missing(text: bytes, path: str, above: str) -> MissingMember:
    names = list(dict.fromkeys(shown(name) for name, _ in _scanned(text, "{}")))
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    names_text = f"only {', '.join(names[:_NAMES_SHOWN])}{more}" if names else "no member"
    place = shown(above[:-1]) if above else "the page"
    return MissingMember(f"the member {shown(path)} is missing: {place} has {names_text}")


def _is_null(text: bytes) -> bool:
    return text.strip() == b"null"


def _scanned(content: bytes, brackets: str) -> Iterator[tuple[str, bytes]]:
    """The values in an object (`{}`), with their names, or in an array (`[]`). Raises ValueError, RecursionError."""
    text = content.decode(*_CODEC)
    place = _behind_gap(text, 0)
    if text[place : place + 1] != brackets[0]:
        raise ValueError(f"expected {brackets[0]}")
    place = _behind_gap(text, place + 1)
    separator = brackets[1] if text[place : place + 1] == brackets[1] else ""
    while separator != brackets[1]:
        name = ""
        if brackets == "{}":
            name, place = _SKIP.raw_decode(text, place)
            place = _behind_gap(text, place)
            if not isinstance(name, str) or text[place : place + 1] != ":":
                raise ValueError("expected a name and a colon")
            place = _behind_gap(text, place + 1)
        end = _SKIP.raw_decode(text, place)[1]
        yield name, text[place:end].encode(*_CODEC)
        place = _behind_gap(text, end)
        separator = text[place : place + 1]
        if separator not in (",", brackets[1]):
            raise ValueError(f"expected a comma or {brackets[1]}")
        place = _behind_gap(text, place + 1) if separator == "," else place
    if _behind_gap(text, place + 1) != len(text):
        raise ValueError("there is text after the end")


def _behind_gap(text: str, place: int) -> int:
    gap = _GAP.match(text, place)
    return place if gap is None else gap.end()
