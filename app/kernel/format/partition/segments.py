"""Segments of a partition path: `name=value` in Hive's form, percent-escaped, so any value is a safe folder name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote

import xxhash

SEGMENT_CHARACTERS_MAX: Final = 200
NULL_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_SAFE: Final = " "
_KEPT: Final = SEGMENT_CHARACTERS_MAX - 17


def partition_path(names: Sequence[str], values: Sequence[str | None]) -> str:
    """The path of one partition; the empty string for a dataset without partitions."""
    return "/".join(segment(name, value) for name, value in zip(names, values, strict=True))


def segment(name: str, value: str | None) -> str:
    """One folder of a path: at most 200 characters, and different for every value."""
    # quote() keeps dots; the `name=` before a value already makes `..` harmless.
    text = f"{quote(name, safe=_SAFE)}={_escaped(value)}"
    if len(text) <= SEGMENT_CHARACTERS_MAX and not _is_shortened(text):
        return text
    # File systems limit names to 255 bytes. The digest keeps shortened names distinct.
    return f"{text[:_KEPT]}~{xxhash.xxh64_hexdigest(text.encode())}"


def _escaped(value: str | None) -> str:
    if value is None:
        return NULL_VALUE
    # Text that equals the mark of null is escaped, to keep it distinct.
    return quote(value, safe=_SAFE) if value != NULL_VALUE else value.replace("_", "%5F", 1)


def _is_shortened(text: str) -> bool:
    return len(text) == SEGMENT_CHARACTERS_MAX and text[_KEPT] == "~"


def read_segment(text: str, name: str) -> str | None:
    """The value in a segment of the field called `name`; None for null, and where the segment is shortened.

    Raises ValueError for a segment of another field.
    """
    if _is_shortened(text):
        return None
    prefix = f"{quote(name, safe=_SAFE)}="
    if not text.startswith(prefix):
        raise ValueError(f"the partition {text!r} is not a partition of the field {name!r}")
    value = text.removeprefix(prefix)
    return None if value == NULL_VALUE else unquote(value)
