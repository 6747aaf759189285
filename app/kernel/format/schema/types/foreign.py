"""The one table of types: the kinds of values of each form of input, and the type of a new column with such values.

Every form reads it, and `docs/type-conversions.md` is made from it. A kind with a type is accepted in every form that
has it, except for the values that `refused` describes. A kind without a type is refused in every form with `refused`.

JSON and CSV have no names of types: their kinds follow from the values, in the notation of `text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Final


class Form(str, Enum):
    """A form of input whose columns have types."""

    ARROW = "Arrow"
    PARQUET = "Parquet"
    AVRO = "Avro"
    PROTOBUF = "Protobuf"
    POSTGRES = "PostgreSQL"
    MYSQL = "MySQL"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKind:
    """Values of one kind.

    `names`: what each form calls it. `type`: of a new column; None if there is none. `text`: how JSON and CSV have it.
    `refused`: which of its values are refused, or why all are.
    """

    name: str
    type: str | None
    names: Mapping[Form, tuple[str, ...]]
    text: str = ""
    refused: str = ""


NOT_FINITE: Final = "NaN and infinities"
OUTSIDE_YEARS: Final = "times outside the years 0001–9999 in UTC"
FINER: Final = "times that are finer than a microsecond"
NOT_OF_A_DAY: Final = "times below 00:00:00 or from 24:00:00"
DECIMAL_BOUNDS: Final = "columns of more than 38 digits, or of a scale below 0 or above the precision"
KEY_KINDS: Final = "maps whose keys are real numbers, lists, maps or structs"


def _names(
    arrow: str = "",
    parquet: str = "",
    avro: str = "",
    protobuf: str = "",
    postgres: str = "",
    mysql: str = "",
) -> Mapping[Form, tuple[str, ...]]:
    lists = dict(zip(Form, (arrow, parquet, avro, protobuf, postgres, mysql), strict=True))
    return {form: tuple(name.strip() for name in names.split("|")) for form, names in lists.items() if names}


_INTERVAL: Final = (
    "months, days and parts of a day have no fixed length together: "
    "send them as columns of their own, or as a text"
)

KINDS: Final = (
    ForeignKind(
        name="booleans",
        type="boolean",
        names=_names("bool", "BOOLEAN", "boolean", "bool", "boolean", "BIT(1)"),
        text="`true`, `false`",
    ),
    ForeignKind(
        name="whole numbers of 8 bits",
        type="int8",
        names=_names("int8", "INT(8)", mysql="TINYINT"),
        text="`-5`, as int64",
    ),
    ForeignKind(
        name="whole numbers of 16 bits",
        type="int16",
        names=_names("int16", "INT(16)", postgres="smallint", mysql="SMALLINT | YEAR"),
        text="`-5`, as int64",
    ),
    ForeignKind(
        name="whole numbers of 32 bits",
        type="int32",
        names=_names("int32", "INT32", "int", "int32 | sint32 | sfixed32", "integer", "MEDIUMINT | INT"),
        text="`-5`, as int64",
    ),
    ForeignKind(
        name="whole numbers of 64 bits",
        type="int64",
        names=_names(
            "int64", "INT64", "long", "int64 | sint64 | sfixed64", "bigint | oid", "BIGINT | BIT(2..63)"
        ),
        text="`-5`",
    ),
    ForeignKind(
        name="unsigned numbers of 8 bits",
        type="uint8",
        names=_names("uint8", "INT(8, unsigned)", mysql="TINYINT UNSIGNED"),
        text="`5`, as int64",
    ),
    ForeignKind(
        name="unsigned numbers of 16 bits",
        type="uint16",
        names=_names("uint16", "INT(16, unsigned)", mysql="SMALLINT UNSIGNED"),
        text="`5`, as int64",
    ),
    ForeignKind(
        name="unsigned numbers of 32 bits",
        type="uint32",
        names=_names(
            "uint32",
            "INT(32, unsigned)",
            protobuf="uint32 | fixed32",
            mysql="MEDIUMINT UNSIGNED | INT UNSIGNED",
        ),
        text="`5`, as int64",
    ),
    ForeignKind(
        name="unsigned numbers of 64 bits",
        type="decimal(20, 0)",
        names=_names(
            "uint64", "INT(64, unsigned)", protobuf="uint64 | fixed64", mysql="BIGINT UNSIGNED | BIT(64)"
        ),
        text="`5`, as whole numbers",
    ),
    ForeignKind(
        name="real numbers of 32 bits",
        type="float",
        names=_names("halffloat | float", "FLOAT16 | FLOAT", "float", "float", "real", "FLOAT"),
        text="`0.5`, as double",
        refused=NOT_FINITE,
    ),
    ForeignKind(
        name="real numbers of 64 bits",
        type="double",
        names=_names("double", "DOUBLE", "double", "double", "double precision", "DOUBLE"),
        text="`0.5`",
        refused=NOT_FINITE,
    ),
    ForeignKind(
        name="decimals",
        type="decimal(p, s)",
        names=_names(
            "decimal32 | decimal64 | decimal128 | decimal256",
            "DECIMAL",
            "bytes decimal | fixed decimal",
            postgres="numeric(p, s)",
            mysql="DECIMAL",
        ),
        text='`"2.40"`, as string',
        refused=DECIMAL_BOUNDS,
    ),
    ForeignKind(
        name="texts",
        type="string",
        names=_names(
            "string | large_string | string_view | arrow.json",
            "STRING | ENUM | JSON",
            "string | enum",
            "string | enum | google.protobuf.FieldMask | google.protobuf.Struct | google.protobuf.Value"
            " | google.protobuf.ListValue",
            'text | varchar | char | "char" | name',
            "VARCHAR | TEXT | CHAR | ENUM | SET | JSON",
        ),
        text="a string",
        refused="texts that are not Unicode",
    ),
    ForeignKind(
        name="bytes",
        type="binary",
        names=_names(
            "binary | large_binary | binary_view | fixed_size_binary",
            "BYTE_ARRAY | FIXED_LEN_BYTE_ARRAY | BSON",
            "bytes | fixed",
            "bytes",
            "bytea",
            "BINARY | VARBINARY | BLOB | GEOMETRY",
        ),
        text="base64, as string",
    ),
    ForeignKind(
        name="identifiers of 128 bits",
        type="uuid",
        names=_names("arrow.uuid", "UUID", "string uuid | fixed uuid", postgres="uuid"),
        text='`"0190163d-8694-739b-aea5-966c26f8ad91"`',
    ),
    ForeignKind(
        name="days",
        type="date",
        names=_names(
            "date32 | date64", "DATE", "int date | int io.debezium.time.Date", postgres="date", mysql="DATE"
        ),
        text="`2026-11-21`",
        refused="days outside the years 0001–9999",
    ),
    ForeignKind(
        name="points in time, in seconds or milliseconds",
        type="timestamp(ms)",
        names=_names(
            "timestamp[s, tz] | timestamp[ms, tz]", "TIMESTAMP(millis, UTC)", "long timestamp-millis"
        ),
        text="`2026-11-21T10:00:00.250Z`, as timestamp",
        refused=OUTSIDE_YEARS,
    ),
    ForeignKind(
        name="points in time, in microseconds or nanoseconds",
        type="timestamp",
        names=_names(
            "timestamp[us, tz] | timestamp[ns, tz]",
            "TIMESTAMP(micros, UTC) | TIMESTAMP(nanos, UTC)",
            "long timestamp-micros | long timestamp-nanos | string io.debezium.time.ZonedTimestamp",
            "google.protobuf.Timestamp",
            "timestamptz",
            "TIMESTAMP",
        ),
        text="`2026-11-21T10:00:00.25Z`",
        refused=f"{OUTSIDE_YEARS}; {FINER}",
    ),
    ForeignKind(
        name="wall-clock times, in seconds or milliseconds",
        type="timestamp_ntz(ms)",
        names=_names(
            "timestamp[s] | timestamp[ms]",
            "TIMESTAMP(millis, local)",
            "long local-timestamp-millis | long io.debezium.time.Timestamp",
        ),
        text="`2026-11-21T10:00:00.250`, as timestamp_ntz",
        refused=OUTSIDE_YEARS,
    ),
    ForeignKind(
        name="wall-clock times, in microseconds or nanoseconds",
        type="timestamp_ntz",
        names=_names(
            "timestamp[us] | timestamp[ns]",
            "TIMESTAMP(micros, local) | TIMESTAMP(nanos, local) | INT96",
            "long local-timestamp-micros | long local-timestamp-nanos | long io.debezium.time.MicroTimestamp"
            " | long io.debezium.time.NanoTimestamp",
            postgres="timestamp",
            mysql="DATETIME",
        ),
        text="`2026-11-21T10:00:00.25`",
        refused=f"{OUTSIDE_YEARS}; {FINER}",
    ),
    ForeignKind(
        name="times of day",
        type="string",
        names=_names(
            "time32 | time64",
            "TIME",
            "int time-millis | long time-micros | int io.debezium.time.Time | long io.debezium.time.MicroTime"
            " | long io.debezium.time.NanoTime",
            postgres="time",
            mysql="TIME",
        ),
        text="`10:00:00`, `10:00:00.250000`",
        refused=f"{NOT_OF_A_DAY}; {FINER}",
    ),
    ForeignKind(
        name="durations",
        type="string",
        names=_names(
            "duration", avro="long io.debezium.time.MicroDuration", protobuf="google.protobuf.Duration"
        ),
        text="`90s`, `-1.500s`",
    ),
    ForeignKind(
        name="other values of a database, as its texts",
        type="string",
        names=_names(postgres="interval | timetz | money | inet | cidr | macaddr"),
        text='`"1 mon 3 days"`',
    ),
    ForeignKind(
        name="intervals of months, days and time",
        type=None,
        names=_names(
            "month_interval | day_time_interval | month_day_nano_interval", "INTERVAL", "fixed duration"
        ),
        refused=_INTERVAL,
    ),
    ForeignKind(
        name="one of several types",
        type=None,
        names=_names("sparse_union | dense_union", avro="union of several types besides null"),
        refused="a column has one type: send one column for each type",
    ),
    ForeignKind(
        name="always null",
        type=None,
        names=_names("null", avro="null"),
        text="`null`",
        refused="nulls have no type: a field that is always null is ignored, and anything else needs a type",
    ),
    ForeignKind(
        name="lists",
        type="list<T>",
        names=_names(
            "list | large_list | fixed_size_list", "LIST | repeated fields", "array", "repeated T", "arrays"
        ),
        text="an array",
    ),
    ForeignKind(
        name="maps",
        type="map<K, V>",
        names=_names("map", "MAP", "map", "map<K, V>"),
        text="an object, as struct",
        refused=f"{KEY_KINDS}; entries with equal keys",
    ),
    ForeignKind(
        name="structs",
        type="struct<name: T, …>",
        names=_names("struct", "groups", "record", "message"),
        text="an object",
        refused="structs without members, and structs within themselves",
    ),
)


@cache
def _by_name() -> Mapping[tuple[Form, str], ForeignKind]:
    return {(form, name): kind for kind in KINDS for form, names in kind.names.items() for name in names}


def foreign_kind(form: Form, name: str) -> ForeignKind | None:
    """The kind of values that a form has under a name; None for a name that the table does not have."""
    return _by_name().get((form, name))


def foreign_types(form: Form) -> Mapping[str, str]:
    """The types of new columns by the names that a form has for them."""
    return {
        name: kind.type for (each, name), kind in _by_name().items() if each is form and kind.type is not None
    }
