"""Data types: a flat type is one value with all that the surfaces of the service need to know of it.

The text form is a small grammar, the same in the API, in Postgres and in the docs:

    boolean int8 int16 int32 int64 uint8 uint16 uint32 float double string binary date uuid
    decimal(precision, scale)          precision 1–38, scale 0–precision
    timestamp  timestamp(ms)           an instant, UTC; microseconds by default
    timestamp_ntz  timestamp_ntz(ms)   a wall-clock time without zone
    list<T>  map<K, V>  struct<name: T, …>

    flat          what every flat type has: its form in Arrow, text, JSON, CSV, Avro, keys, paths, bounds, Hive, Delta,
                  Iceberg, Spark
    boolean, integer, real, decimals, strings, binary, dates, timestamps, uuids    the flat types
    names         their list: a new type is a module and its line there
    nested        types of values with parts
    grammar       the text form of types
    clock_texts   texts of times of day and of durations, which are strings
    foreign       the one table of types: what each form of input has, and the types of new columns
    arrow_types   the flat types of Arrow columns

>>> from app.kernel.format.schema.types import parse_type
>>> price = parse_type("decimal(9, 2)")
>>> price.arrow
Decimal128Type(decimal128(9, 2))
>>> price.read("2.4"), price.hive, price.avro["type"]
(Decimal('2.40'), 'decimal(9,2)', 'bytes')
"""

from __future__ import annotations

from app.kernel.format.schema.types.arrow_types import NoType, annotated, inferred_type, stored_type
from app.kernel.format.schema.types.binary import BINARY, Bytes
from app.kernel.format.schema.types.boolean import BOOLEAN, Boolean
from app.kernel.format.schema.types.clock_texts import FINER_THAN_MICROS, NOT_OF_A_DAY
from app.kernel.format.schema.types.dates import DATE, DATE_DAYS_MAX, DATE_DAYS_MIN, Date
from app.kernel.format.schema.types.decimals import DECIMAL_PRECISION_MAX, Decimal
from app.kernel.format.schema.types.flat import FlatType, JsonForm, RefusedText, Steps, Undecodable
from app.kernel.format.schema.types.foreign import KINDS, Form, foreign_kind, foreign_types
from app.kernel.format.schema.types.grammar import DEPTH_MAX, MEMBERS_MAX, parse_columns, parse_type
from app.kernel.format.schema.types.integer import INT8, INT16, INT32, INT64, INTEGER_TEXT, Integer
from app.kernel.format.schema.types.names import PLAIN_TYPES
from app.kernel.format.schema.types.nested import (
    FIELD_ID_METADATA,
    DataType,
    List,
    Map,
    Struct,
    has_order,
    id_metadata,
    may_be_key,
    member_path_below,
    member_types,
    to_arrow,
)
from app.kernel.format.schema.types.real import DOUBLE, FLOAT, NOT_FINITE, Real
from app.kernel.format.schema.types.strings import STRING, String
from app.kernel.format.schema.types.syntax_error import TypeSyntaxError
from app.kernel.format.schema.types.timestamps import (
    OUTSIDE_YEARS,
    TICKS,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Timestamp,
    timestamp_bounds,
)

__all__ = [
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DATE_DAYS_MAX",
    "DATE_DAYS_MIN",
    "DECIMAL_PRECISION_MAX",
    "DEPTH_MAX",
    "DOUBLE",
    "FIELD_ID_METADATA",
    "FINER_THAN_MICROS",
    "FLOAT",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "INTEGER_TEXT",
    "KINDS",
    "MEMBERS_MAX",
    "NOT_FINITE",
    "NOT_OF_A_DAY",
    "OUTSIDE_YEARS",
    "PLAIN_TYPES",
    "STRING",
    "TICKS",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "Boolean",
    "Bytes",
    "DataType",
    "Date",
    "Decimal",
    "FlatType",
    "Form",
    "Integer",
    "JsonForm",
    "List",
    "Map",
    "NoType",
    "Real",
    "RefusedText",
    "Steps",
    "String",
    "Struct",
    "Timestamp",
    "TypeSyntaxError",
    "Undecodable",
    "annotated",
    "foreign_kind",
    "foreign_types",
    "has_order",
    "id_metadata",
    "inferred_type",
    "may_be_key",
    "member_path_below",
    "member_types",
    "parse_columns",
    "parse_type",
    "stored_type",
    "timestamp_bounds",
    "to_arrow",
]
