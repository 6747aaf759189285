"""Casts of writes with `explicit_cast`, compared with Spark's CAST in ANSI mode on generated values."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from app.kernel.codecs.arrow.explicit_casts import cast_explicit, castable
from app.kernel.format.schema.types import parse_type
from tests.support.shares import share
from workers.engine.spark_engine import SparkEngine

_ROWS: Final = 150
_TARGETS: Final = {
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "decimal(5, 2)": "decimal(5, 2)",
    "decimal(38, 10)": "decimal(38, 10)",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
_TEXTS: Final = (
    *("", " ", "0", "-0", "+7", " 42 ", "1.5", ".5", "5.", "1e3", "-1E-3", "1e400", "99999.995", "128", "x"),
    *(
        "9223372036854775808",
        "2147483648",
        "true",
        " T",
        "NO",
        "y",
        "2",
        "yes!",
        "Łódź",
        "2026",
        "2026-1",
        "0000-01-01",
    ),
    *(
        "2026-1-2",
        "2026-02-29",
        "2024-02-29",
        "2026-11-21T",
        "2026-11-21 ",
        "2026-11-21 x",
        "2026-13-01",
        "1-1-1",
    ),
    *(
        "2026-11-21 10:00",
        "2026-11-21T10:00:00",
        "2026-11-21 1:2:3.4567891",
        "2026-11-21 24:00:00",
        "2026-11-21 10",
    ),
    *(
        "2026-11-21 10:00:00Z",
        "2026-11-21 10:00:00+01:30",
        "2026-11-21 10:00:00-7:5",
        "2026-11-21 10:00:00+19:00",
    ),
)
_MICROS: Final = 253_402_300_799_999_999
_MICROS_MIN: Final = -62_135_596_800_000_000
# The days and microseconds of the years 0001–9999.
_RANGES: Final = {
    "date": (-719_162, 2_932_896),
    "timestamp": (_MICROS_MIN, _MICROS),
    "timestamp_ntz": (_MICROS_MIN, _MICROS),
}


def _values(name: str, chance: random.Random) -> list[Any]:
    """Values of a type of Spark, the special ones first."""
    integers = [0, 1, -1, 127, 128, -129, 32_768, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)]
    numbers = [
        0.0,
        -0.5,
        0.1,
        1.005,
        2.5,
        -2.5,
        999.995,
        1e7,
        1e-3,
        123456.789,
        1.5e10,
        3e38,
        1e39,
        1e300,
        -1e19,
    ]
    special = [*numbers, math.nan, math.inf, -math.inf]
    match name:
        case "boolean":
            return [True, False]
        case "bigint":
            return integers + [chance.getrandbits(64) - 2**63 >> chance.randrange(64) for _ in range(_ROWS)]
        case "int":
            return [
                -(2**31),
                2**31 - 1,
                *(chance.getrandbits(32) - 2**31 >> chance.randrange(32) for _ in range(_ROWS)),
            ]
        case "float":
            some = [chance.uniform(-1, 1) * 10 ** chance.randrange(-6, 12) for _ in range(_ROWS)]
            return pa.array(special + some, pa.float64()).cast(pa.float32(), safe=False).to_pylist()
        case "double":
            return special + [chance.uniform(-1, 1) * 10 ** chance.randrange(-10, 30) for _ in range(_ROWS)]
        case "decimal":
            return [
                Decimal(chance.randrange(-(10**18), 10**18) // 10 ** chance.randrange(18)).scaleb(-4)
                for _ in range(_ROWS)
            ]
        case "date":
            return [
                0,
                -1,
                2_932_896,
                -719_162,
                *(chance.randrange(-719_162, 2_932_897) for _ in range(_ROWS)),
            ]
        case "timestamp" | "timestamp_ntz":
            return [
                0,
                -1,
                _MICROS,
                *(chance.randrange(_MICROS_MIN, _MICROS) for _ in range(_ROWS)),
            ]
        case "binary":
            return [b"", b"ab", "ż".encode()]
    return [*_TEXTS, *(repr(chance.uniform(-1e6, 1e6)) for _ in range(20))]


_SOURCES: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal": pa.decimal128(20, 4),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)


def _accepted(value: Any) -> Any:
    """None for what is no value of a dataset: NaN and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@share(3)
@pytest.mark.parametrize("source", _SOURCES)
def test_values_are_cast_as_by_spark(engine: SparkEngine, source: str) -> None:
    session = SparkSession.active()
    session.conf.set("spark.sql.ansi.enabled", "true")
    array = _array(_values(source, random.Random(7)), _SOURCES[source])
    frame = session.createDataFrame(pa.table({"value": array}))
    if source == "timestamp_ntz":
        # Spark reads Arrow's times without a zone as times of the session's zone, which is UTC.
        frame = frame.selectExpr("CAST(value AS timestamp_ntz) AS value")
    different: list[str] = []
    for target, spark_target in _TARGETS.items():
        try:
            spark = frame.selectExpr(f"try_cast(value AS {spark_target}) AS found")
            possible = True
        except AnalysisException:
            possible = False
        if possible != castable(array.type, parse_type(target)):
            different.append(f"{source} to {target}: Spark {'casts' if possible else 'does not cast'}")
        elif possible:
            found, _ = cast_explicit(array, parse_type(target))
            expected = spark.toArrow().column("found").combine_chunks().cast(found.type)
            both = zip(array.cast(pa.string()).to_pylist(), _shown(expected), _shown(found), strict=True)
            different += [
                f"{value!r} to {target}: Spark {a!r}, here {b!r}"
                for value, a, b in both
                if a != b
                # Spark has a text of NaN and of infinity, and calls them true.
                and not (b is None and value in _NOT_FINITE)
                and not _as_near(source, target, a, b)
            ]
    assert different == []


_NOT_FINITE: Final = ("nan", "inf", "-inf")


def _as_near(source: str, target: str, spark: Any, here: Any) -> bool:
    """Whether results may differ: Spark has years that datasets do not have, and Java before release 19 wrote more
    digits of a number than it has.
    """
    if here is None and target in _RANGES:
        low, high = _RANGES[target]
        return not low <= spark <= high
    if source in ("float", "double", "timestamp") and (target == "string" or target.startswith("decimal")):
        exact = 1e-6 if source == "float" else 1e-15
        return (
            spark is not None and here is not None and math.isclose(float(spark), float(here), rel_tol=exact)
        )
    return False


def _shown(array: pa.Array) -> list[Any]:
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return [_accepted(value) for value in array.to_pylist()]
