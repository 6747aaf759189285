"""Globs of partition paths, segment by segment: `country=DE/*`, `ts_day=2026-11-*`, `**/hour=0?`.

In a segment `*` is any text, `?` any character, `[a-c]` one of the characters and `[!a-c]` any other character; `**`
is any number of segments. A glob names folders: everything below a matching folder matches. Paths and globs are
percent-escaped. A glob may escape any character, in digits of either case; it is compared in the form that paths have.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from app.kernel.format.partition.fields import PartitionSyntaxError, parse_partition, partition_name
from app.kernel.format.partition.segments import NULL_VALUE, SEGMENT_CHARACTERS_MAX

GLOB_CHARACTERS_MAX: Final = 4_096
_ANY_DEPTH: Final = "**"
_CLASS: Final = re.compile(r"\[!?[A-Za-z0-9_.~= -]+\]")
_ESCAPES: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_INVALID_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED_UNDERSCORE: Final = re.compile(r"%5[Ff]")
_NOT_NULL: Final = rf"(?!.*={NULL_VALUE}\Z)"
# The bytes that paths do not escape.
_UNESCAPED: Final = re.compile(rb"[A-Za-z0-9_.~ -]")
# Characters that occur neither in partition paths nor in globs.
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.~=% *?\[\]-]")
_UP_TO_WILDCARD: Final = re.compile(r"[^*?\[]*")


def matches_partition_glob(path: str, glob: str) -> bool:
    """Whether the partition at `path` is in a folder that the glob matches. Raises PartitionSyntaxError."""
    patterns = _compiled(glob)
    # The positions in the glob that the part of the path read so far may have reached.
    places = _opened({0}, patterns)
    for segment in path.split("/"):
        if len(patterns) in places:
            return True
        next_places = set()
        for place in places:
            pattern = patterns[place]
            if pattern is None:
                next_places.add(place)
            elif pattern.match(segment):
                next_places.add(place + 1)
        places = _opened(next_places, patterns)
    return len(patterns) in places


def _opened(places: set[int], patterns: Sequence[re.Pattern[str] | None]) -> set[int]:
    """The positions, and those behind a `**`, which may match no segment."""
    all_places = set(places)
    for place, pattern in enumerate(patterns):
        if place in all_places and pattern is None:
            all_places.add(place + 1)
    return all_places


def check_partition_glob(glob: str, fields: Sequence[str]) -> None:
    """Raises PartitionSyntaxError, with the reason, for a glob that cannot match any partition by `fields`."""
    segments = _segments(glob)
    names = [quote(partition_name(parse_partition(text)), safe=" ") for text in fields]
    shape = "/".join(f"{name}=…" for name in names)
    if _ANY_DEPTH not in segments and len(segments) > len(names):
        raise PartitionSyntaxError(f"{glob!r} is deeper than a partition: partitions are {shape}")
    for number, segment in enumerate(map(_as_in_paths, segments)):
        possible = names if _ANY_DEPTH in segments else [names[number]]
        literal = _literal(segment)
        fits = any(f"{name}=".startswith(literal) or literal.startswith(f"{name}=") for name in possible)
        if not fits or (literal == segment and "=" not in literal):
            raise PartitionSyntaxError(
                f"{segment!r} of {glob!r} matches no partition: partitions are {shape}"
            )


def _literal(segment: str) -> str:
    """The text before the first wildcard."""
    match = _UP_TO_WILDCARD.match(segment)
    return match.group() if match else ""


@lru_cache(maxsize=4_096)
def _compiled(glob: str) -> tuple[re.Pattern[str] | None, ...]:
    """A pattern per segment, None for `**`."""
    return tuple(
        None if segment == _ANY_DEPTH else re.compile(_expression(segment)) for segment in _segments(glob)
    )


def _expression(segment: str) -> str:
    """The regular expression of a segment of a glob."""
    text = _as_in_paths(segment)
    if not _ESCAPED_UNDERSCORE.search(segment):
        return translate(text)
    # Paths escape an underscore only at the beginning of the text that otherwise means null.
    return f"{_NOT_NULL}(?:{translate(text)}|{translate(text.replace('=_', '=%5F', 1))})"


def _as_in_paths(segment: str) -> str:
    """The segment with the characters and escapes that a path has for the same text."""
    return _ESCAPES.sub(_path_escapes, segment)


def _path_escapes(escapes: re.Match[str]) -> str:
    pairs = escapes.group()[1:].split("%")
    return "".join(
        chr(int(pair, 16)) if _UNESCAPED.fullmatch(bytes.fromhex(pair)) else f"%{pair.upper()}"
        for pair in pairs
    )


def _segments(glob: str) -> list[str]:
    if not glob:
        raise PartitionSyntaxError("an empty glob matches no partition; '*' matches all")
    if len(glob) > GLOB_CHARACTERS_MAX:
        raise PartitionSyntaxError(f"a glob has {GLOB_CHARACTERS_MAX} characters at most, not {len(glob)}")
    segments = glob.split("/")
    for segment in segments:
        _check(segment, glob)
    return segments


def _check(segment: str, glob: str) -> None:
    if not segment:
        raise PartitionSyntaxError(
            f"{glob!r} has an empty segment: it begins or ends with '/', or has two in a row"
        )
    if len(segment) > SEGMENT_CHARACTERS_MAX:
        raise PartitionSyntaxError(
            f"a segment of a partition has {SEGMENT_CHARACTERS_MAX} characters at most"
        )
    if _ANY_DEPTH in segment and segment != _ANY_DEPTH:
        raise PartitionSyntaxError(f"'**' stands for whole segments: put it between slashes in {glob!r}")
    rest = _CLASS.sub("", segment)
    if "[" in rest or "]" in rest:
        raise PartitionSyntaxError(
            f"'[' in {glob!r} needs letters, digits or ranges and a ']'; paths have %5B and %5D for brackets as such"
        )
    if "=" in rest.partition("=")[2]:
        raise PartitionSyntaxError(f"paths escape '=' as %3D behind the name: write it so in {glob!r}")
    if _INVALID_ESCAPE.search(rest):
        raise PartitionSyntaxError(
            f"'%' in {glob!r} needs two hexadecimal digits; paths have %25 for '%' as such"
        )
    for escapes in _ESCAPES.finditer(segment):
        _check_text(escapes, glob)
    if foreign := _FOREIGN.search(rest):
        escape = quote(foreign.group(), safe="")
        raise PartitionSyntaxError(f"paths escape {foreign.group()!r} as {escape}: write it so in {glob!r}")


def _check_text(escapes: re.Match[str], glob: str) -> None:
    """Raises PartitionSyntaxError unless the bytes are UTF-8; a character may be in part next to a wildcard."""
    text, around = escapes.string, "*?[]"
    data = bytes.fromhex(escapes.group().replace("%", ""))
    if escapes.start() and text[escapes.start() - 1] in around:
        data = data.lstrip(bytes(range(0x80, 0xC0)))
    at_end = text[escapes.end() : escapes.end() + 1]
    try:
        getincrementaldecoder("utf-8")().decode(data, final=at_end == "" or at_end not in around)
    except UnicodeDecodeError:
        raise PartitionSyntaxError(
            f"{escapes.group()!r} in {glob!r} is no UTF-8: paths escape the bytes of UTF-8, as %C3%B6 for 'ö'"
        ) from None
