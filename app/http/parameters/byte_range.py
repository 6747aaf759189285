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
    found = None if text is None else _RANGE.fullmatch(text.strip())
    if found is None or (if_range is not None and if_range.strip() != entity_tag):
        return None
    first, last, suffix = found.groups()
    if suffix is not None:
        requested = range(max(size_bytes - int(suffix), 0), size_bytes)
    elif last is not None and int(last) < int(first):
        return None
    else:
        requested = range(int(first), size_bytes if last is None else min(int(last) + 1, size_bytes))
    if not requested:
        raise RangeNotSatisfiable(
            f"the file has {size_bytes} bytes; Range {text} selects none of them", size_bytes=size_bytes
        )
    return requested
