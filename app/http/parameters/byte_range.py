"""Parts of a file: the header Range of RFC 9110, one range of bytes at a time."""

from __future__ import annotations

import re
from typing import Final

from app.http.errors import RangeNotSatisfiable

_DIGITS_MAX: Final = 19
_RANGE: Final = re.compile(
    rf"bytes\s*=\s*(?:(\d{{1,{_DIGITS_MAX}}})-(\d{{1,{_DIGITS_MAX}}})?|-(\d{{1,{_DIGITS_MAX}}}))",
    re.IGNORECASE,
)


def requested_range(text: str | None, if_range: str | None, size_bytes: int, entity_tag: str) -> range | None:
    """The bytes that `Range` requests; None for all of them.

    As the RFC requires, a range that is malformed or not of bytes, several ranges, and a range of a file with another
    ETag than `If-Range` are ignored. Raises RangeNotSatisfiable.
    """
    range_match = None if text is None else _RANGE.fullmatch(text.strip())
    if range_match is None or (if_range is not None and if_range.strip() != entity_tag):
        return None
    first, last, suffix = range_match.groups()
    if suffix is not None:
        part = range(max(size_bytes - int(suffix), 0), size_bytes)
    elif last is not None and int(last) < int(first):
        return None
    else:
        part = range(int(first), size_bytes if last is None else min(int(last) + 1, size_bytes))
    if not part:
        raise RangeNotSatisfiable(
            f"the file has {size_bytes} bytes; Range {text} selects none of them", size_bytes=size_bytes
        )
    return part
