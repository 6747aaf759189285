"""Parts of a file: the header Range of RFC 9110, one range of bytes at a time."""

from __future__ import annotations

import re
from typing import Final

from litestar.datastructures import Headers

from app.http.problems import RangeNotSatisfiable

_DIGITS_MAX: Final = 19
_RANGE: Final = re.compile(
    rf"bytes\s*=\s*(?:(\d{{1,{_DIGITS_MAX}}})-(\d{{1,{_DIGITS_MAX}}})?|-(\d{{1,{_DIGITS_MAX}}}))",
    re.IGNORECASE,
)


def requested_range(headers: Headers, size_bytes: int, entity_tag: str) -> range | None:
    """The bytes that are asked for; None for all of them.

    What is no range of bytes, or several of them, is ignored, as that RFC has it; so is a range of an earlier file,
    which If-Range tells. Raises RangeNotSatisfiable.
    """
    text = headers.get("range")
    found = None if text is None else _RANGE.fullmatch(text.strip())
    if found is None or headers.get("if-range", entity_tag).strip() != entity_tag:
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
            f"the file has {size_bytes} bytes, and {text} asks for none", size_bytes=size_bytes
        )
    return requested
