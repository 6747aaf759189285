"""Dates and times of Avro, which are whole numbers, as JSON values; also those that Debezium marks by name.

https://avro.apache.org/docs/1.12.0/specification/#logical-types
https://debezium.io/documentation/reference/
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from app.kernel.codecs.messages.reading import BadMessage, Convert
from app.kernel.format.schema.types import (
    DATE_DAYS_MAX,
    DATE_DAYS_MIN,
    FINER_THAN_MICROS,
    NOT_OF_A_DAY,
    OUTSIDE_YEARS,
)

_EPOCH_DAY: Final = dt.date(1970, 1, 1)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_PER_MICRO: Final = {"ns": 1_000}
_MICROS_PER: Final = {"ms": 1_000, "us": 1}
_DAY_MICROS: Final = 86_400_000_000
_SECOND_MICROS: Final = 1_000_000


def _micros(value: int, unit: str, since: str) -> int:
    if unit != "ns":
        return value * _MICROS_PER[unit]
    if value % _PER_MICRO[unit]:
        raise BadMessage(f"a time of {value} ns since {since}, {FINER_THAN_MICROS}")
    return value // _PER_MICRO[unit]


def _moments(unit: str, zone: dt.tzinfo | None) -> Convert:
    epoch = _EPOCH.replace(tzinfo=zone)

    def convert(value: int) -> dt.datetime:
        try:
            return epoch + dt.timedelta(microseconds=_micros(value, unit, "1970-01-01"))
        except OverflowError:
            raise BadMessage(f"a time of {value} {unit} since 1970-01-01, {OUTSIDE_YEARS}") from None

    return convert


def _day(days: int) -> dt.date:
    if not DATE_DAYS_MIN <= days <= DATE_DAYS_MAX:
        raise BadMessage(f"a day of {days} days since 1970-01-01, which is outside the years 0001–9999")
    return _EPOCH_DAY + dt.timedelta(days=days)


def _times_of_day(unit: str) -> Convert:
    def convert(value: int) -> str:
        micros = _micros(value, unit, "midnight")
        if not 0 <= micros < _DAY_MICROS:
            raise BadMessage(f"a time of {value} {unit} since midnight, {NOT_OF_A_DAY}")
        return (_EPOCH + dt.timedelta(microseconds=micros)).time().isoformat()

    return convert


def _duration(micros: int) -> str:
    seconds, fraction = divmod(abs(micros), _SECOND_MICROS)
    digits = f"{fraction:06d}"
    digits = digits[:3] if digits.endswith("000") else digits
    return f"{'-' if micros < 0 else ''}{seconds}{f'.{digits}' if fraction else ''}s"


CONVERTERS: Final[Mapping[str, Convert]] = {
    "int date": _day,
    "int io.debezium.time.Date": _day,
    "int time-millis": _times_of_day("ms"),
    "long time-micros": _times_of_day("us"),
    "long timestamp-millis": _moments("ms", dt.UTC),
    "long timestamp-micros": _moments("us", dt.UTC),
    "long timestamp-nanos": _moments("ns", dt.UTC),
    "long local-timestamp-millis": _moments("ms", None),
    "long local-timestamp-micros": _moments("us", None),
    "long local-timestamp-nanos": _moments("ns", None),
    "int io.debezium.time.Time": _times_of_day("ms"),
    "long io.debezium.time.MicroTime": _times_of_day("us"),
    "long io.debezium.time.NanoTime": _times_of_day("ns"),
    "long io.debezium.time.MicroDuration": _duration,
    "long io.debezium.time.Timestamp": _moments("ms", None),
    "long io.debezium.time.MicroTimestamp": _moments("us", None),
    "long io.debezium.time.NanoTimestamp": _moments("ns", None),
}
"""Of the numbers of a kind, by its name in the table of types."""
TIMES: Final[frozenset[Any]] = frozenset(name for name in CONVERTERS if "debezium" not in name)
"""The logical types of Avro that are converted here."""
