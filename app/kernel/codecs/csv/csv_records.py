"""The boundaries of CSV records: RFC 4180 with LF or CRLF, and the recovery from misplaced quotation marks.

Quotes are counted for a whole piece at once. Only if they do not match are records examined one by one: then the first
line that is not a record is left out, and the next line starts a record again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

_QUOTE: Final = 0x22
_LINE_FEED: Final = 0x0A
_CARRIAGE_RETURN: Final = 0x0D
_BEFORE_OPENING: Final = np.frombuffer(b',\n"', dtype=np.uint8)
_AFTER_CLOSING: Final = np.frombuffer(b',\r\n"', dtype=np.uint8)
_Octets = npt.NDArray[np.uint8]

_OPEN_CELL: Final = rb'"[^"]*+(?:""[^"]*+)*+'
_CELL: Final = rb"(?:" + _OPEN_CELL + rb'"|[^",\r\n]*+)'
_RECORD: Final = re.compile(_CELL + rb"(?:," + _CELL + rb")*+\r?\n")
_LAST_RECORD: Final = re.compile(_CELL + rb"(?:," + _CELL + rb")*+\Z")
_UNFINISHED: Final = re.compile(rb"(?:" + _CELL + rb",)*+(?:" + _OPEN_CELL + rb"|" + _CELL + rb"\r?)\Z")


class QuoteFault(msgspec.Struct, frozen=True, kw_only=True):
    """A byte that CSV does not allow at its position, and the reason."""

    position: int
    reason: str


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes [start, end): whole records, or, with a fault, one line that is not a record."""

    start: int
    end: int
    fault: QuoteFault | None = None


def record_end(data: bytes, *, last: bool = False) -> int | None:
    """The position after the first (or last) line end outside quotes; None without a line end."""
    ends = record_ends(data)
    return int(ends[-1 if last else 0]) if len(ends) else None


def record_ends(data: bytes) -> npt.NDArray[np.intp]:
    """The positions after the line ends outside quotes."""
    octets = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(octets == _LINE_FEED)
    return ends[_outside_quotes(octets, ends)] + 1


def is_record(text: bytes, *, blank_lines: bool) -> bool:
    """Whether the text, without a line end, is exactly one record. `blank_lines`: whether an empty text is a record."""
    return (blank_lines or bool(text)) and _LAST_RECORD.match(text) is not None


def record_spans(data: bytes, *, blank_lines: bool) -> list[tuple[int, int]]:
    """Start and end of each record, line ends included. `blank_lines`: whether empty lines are records."""
    ends = record_ends(data).tolist()
    if data and (not ends or ends[-1] != len(data)):
        ends.append(len(data))
    spans = zip([0, *ends], ends, strict=False)
    return [(start, end) for start, end in spans if blank_lines or data[start:end].strip(b"\r\n")]


def quote_fault(data: bytes) -> QuoteFault | None:
    """The first quote or return that RFC 4180 does not allow, for which Arrow would guess."""
    octets = np.frombuffer(data, dtype=np.uint8)
    return _misplaced_quote(octets) or _lone_return(data, octets)


def sound_runs(text: bytes, *, last: bool, record_bytes_max: int) -> Iterator[Run]:
    """Runs of records, and the lines between them that are not records, in order.

    `last`: the text is the end of the input. Otherwise an incomplete record at the end is in no run, unless it exceeds
    the limit of a record.
    """
    start = position = 0
    while position < len(text):
        record = _RECORD.match(text, position) or (_LAST_RECORD.match(text, position) if last else None)
        if record is not None:
            position = record.end()
            continue
        end = text.find(b"\n", position) + 1
        if not last and (
            not end or (len(text) - position <= record_bytes_max and _UNFINISHED.match(text, position))
        ):
            break
        if position > start:
            yield Run(start=start, end=position)
        end = end or len(text)
        yield Run(start=position, end=end, fault=quote_fault(text[position:end]))
        start = position = end
    if position > start:
        yield Run(start=start, end=position)


def _outside_quotes(octets: _Octets, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Whether each position follows an even number of quotation marks."""
    quotes = np.flatnonzero(octets == _QUOTE)
    outside: npt.NDArray[np.bool_] = np.searchsorted(quotes, positions) % 2 == 0
    return outside


def _misplaced_quote(octets: _Octets) -> QuoteFault | None:
    quotes = np.flatnonzero(octets == _QUOTE)
    if not len(quotes):
        return None
    # Every other quote opens a cell or is the second of a pair that stands for one quotation mark.
    opening, closing = quotes[0::2], quotes[1::2]
    before, after = octets[opening[opening > 0] - 1], octets[closing[closing < len(octets) - 1] + 1]
    positions = np.concatenate(
        (
            opening[opening > 0][~np.isin(before, _BEFORE_OPENING)],
            closing[closing < len(octets) - 1][~np.isin(after, _AFTER_CLOSING)],
        )
    )
    if len(positions):
        return QuoteFault(
            position=int(positions.min()), reason="a quotation mark inside a cell must be doubled"
        )
    if len(quotes) % 2:
        alone: npt.NDArray[Any] = quotes[0::2][np.diff(quotes, prepend=-2)[0::2] > 1]
        return QuoteFault(position=int(alone[-1]), reason="a quoted cell is never closed")
    return None


def _lone_return(data: bytes, octets: _Octets) -> QuoteFault | None:
    if data.count(b"\r") == data.count(b"\r\n"):
        return None
    returns = np.flatnonzero(octets == _CARRIAGE_RETURN)
    returns = returns[_outside_quotes(octets, returns)]
    before_line_feed = octets[np.minimum(returns + 1, len(octets) - 1)] == _LINE_FEED
    if before_line_feed.all():
        return None
    return QuoteFault(
        position=int(returns[~before_line_feed][0]),
        reason="a carriage return outside quotes must be followed by a line feed",
    )
