"""The rule of watermarks: which rows are late, and what the watermark is after a commit.

The watermark of a version is the greatest event time that was written up to it, less the delay. A row is late if its
event time is before the watermark of the version before its commit. The writes of a commit are judged by the same
watermark, so the result does not depend on their order in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOWEST: Final = datetime(1, 1, 2, tzinfo=UTC)
_HIGHEST: Final = datetime(9999, 12, 30, tzinfo=UTC)
_UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY: Final = 24 * 60 * 60 * 1_000_000


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """What a merge task found of the event times of its rows.

    `before`: the watermark that they were compared with. `watermark`: that of their greatest event time; None without
    event times. `rows`: the number of late rows by grouped write.
    """

    before: datetime | None
    watermark: datetime | None = None
    rows: dict[int, int] = {}


def is_late(times: pa.ChunkedArray, before: datetime | None) -> np.ndarray:
    """Whether each event time is before the watermark (bool). A null is not. `times`: dates or timestamps."""
    if before is None:
        return np.zeros(len(times), dtype=bool)
    # A time is before the watermark if it is before the next whole unit.
    limit = -(-((before - _EPOCH) // _MICROSECOND) // _unit(times.type))
    numbers = _numbers(times)
    return np.asarray(pc.fill_null(pc.less(numbers, limit), False).to_numpy(), dtype=bool)


def watermark_of(times: pa.ChunkedArray, delay_seconds: int) -> datetime | None:
    """The watermark of the greatest event time; None without one. Times beyond year 9999 count as its end."""
    greatest: int | None = pc.max(_numbers(times)).as_py()
    if greatest is None:
        return None
    behind = greatest * _unit(times.type) - delay_seconds * 1_000_000
    lowest, highest = ((end - _EPOCH) // _MICROSECOND for end in (_LOWEST, _HIGHEST))
    return _EPOCH + _MICROSECOND * min(max(behind, lowest), highest)


def watermark_text(watermark: datetime) -> str:
    """The watermark as the API writes every time: RFC 3339 in UTC with `Z`, and no fraction that is zero."""
    text: str = msgspec.to_builtins(watermark.astimezone(UTC))
    return text


def latest(watermarks: Iterable[datetime | None]) -> datetime | None:
    """The greatest watermark: it never goes back. None if there is none."""
    return max((each for each in watermarks if each is not None), default=None)


def least(watermarks: Iterable[datetime | None]) -> datetime | None:
    """The watermark of rows made of several feeds: None if one of them has none."""
    marks = list(watermarks)
    times = [each for each in marks if each is not None]
    return min(times) if times and len(times) == len(marks) else None


def _numbers(times: pa.ChunkedArray) -> pa.ChunkedArray:
    whole = times.cast(pa.int32()) if pa.types.is_date32(times.type) else times
    return whole.cast(pa.int64())


def _unit(kind: pa.DataType) -> int:
    """The microseconds of a unit of the type."""
    return _DAY if pa.types.is_date32(kind) else _UNITS[kind.unit]
