"""Columns of every type: what rows hold in them, and the literals that may stand beside them in a filter."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from app.kernel.format.schema.schema import Field, Schema

Row = dict[str, Any]
EXACT = decimal.Context(prec=60)
EPOCH = dt.datetime.fromisoformat("1970-01-01")
TYPES = {
    "flag": "boolean",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "f32": "float",
    "f64": "double",
    "price": "decimal(5, 2)",
    "wide": "decimal(38, 0)",
    "word": "string",
    "raw": "binary",
    "day": "date",
    "at": "timestamp",
    "at_ms": "timestamp(ms)",
    "clock": "timestamp_ntz",
    "clock_ms": "timestamp_ntz(ms)",
    "tags": "list<string>",
    'an "odd" name': "int32",
    "place": "struct<n: int32, inner: struct<word: string, `in`: timestamp(ms)>>",
}
SCHEMA = Schema(
    id=1,
    fields=tuple(
        Field(id=number, name=name, type=kind) for number, (name, kind) in enumerate(TYPES.items(), 7)
    ),
)
BOUNDS = {f"i{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)} | {
    f"u{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)
}


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A column, or a member of a struct.

    `values`: what rows hold, as pyarrow takes it. `literals`: texts, each with what it stands for. `meaning`: turns a
    value into what literals stand for; both are compared by Python.
    """

    text: str
    path: tuple[str, ...]
    values: st.SearchStrategy[Any]
    literals: st.SearchStrategy[tuple[str, Any]]
    meaning: Callable[[Any], Any] = Fraction
    ordered: bool = True

    def of(self, row: Row) -> Any:
        value: Any = row
        for name in self.path:
            value = None if value is None else value[name]
        return None if value is None else self.meaning(value)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _small(low: int, high: int) -> st.SearchStrategy[int]:
    return st.sampled_from(
        [n for n in (low, low + 1, -2, -1, 0, 1, 2, 3, high - 1, high) if low <= n <= high]
    )


def _number_texts(low: int, high: int) -> st.SearchStrategy[tuple[str, Fraction]]:
    """Numbers on, between and beyond the values of a range, in several spellings."""
    near = st.sampled_from([low - 1, low, -3, -2, -1, 0, 1, 2, 3, high - 1, high, high + 1, high * 1_000])
    whole = near.flatmap(lambda n: st.sampled_from([str(n), f"{n}.0", f"{n}e0", f"{n}00E-2", f"{n}."]))
    between = near.flatmap(lambda n: st.sampled_from([f"{n}.5", f"{n}.004", f"{n}.25"]))
    return st.one_of(whole, between).map(lambda text: (text, Fraction(text.removesuffix("."))))


def _integers(name: str, *, path: tuple[str, ...] = (), text: str = "") -> Domain:
    low, high = BOUNDS.get(name, (-(2**31), 2**31 - 1))
    return Domain(
        text=text or name, path=path or (name,), values=_small(low, high), literals=_number_texts(low, high)
    )


def _floats(name: str, kind: type[np.floating[Any]]) -> Domain:
    texts = ["0", "-0", "0.0", "0.1", "-0.1", "1.5", "2", "1e30", "16777217", "-2.5e-3"]
    beyond = {"1e400": Fraction(10) ** 400, "-1e400": -(Fraction(10) ** 400)}
    near = {text: Fraction(float(kind(float(text)))) for text in texts}
    return Domain(
        text=name,
        path=(name,),
        values=st.sampled_from([float(kind(float(text))) for text in texts]),
        literals=st.sampled_from(list((near | beyond).items())),
    )


def _decimals(name: str, precision: int, scale: int) -> Domain:
    high = 10**precision - 1
    steps = st.sampled_from([-high, -100, -1, 0, 1, 50, 100, 101, 150, high])
    numbers = st.one_of(
        _number_texts(-1, 2),
        steps.map(
            lambda step: (f"{EXACT.scaleb(decimal.Decimal(step), -scale):f}", Fraction(step, 10**scale))
        ),
    )
    return Domain(
        text=name,
        path=(name,),
        values=steps.map(lambda step: EXACT.scaleb(decimal.Decimal(step), -scale)),
        literals=st.one_of(numbers, numbers.map(lambda each: (quoted(each[0]), each[1]))),
    )


def _seconds(moment: dt.datetime) -> Fraction:
    return Fraction((moment - EPOCH) // dt.timedelta(microseconds=1), 10**6)


MOMENTS = [
    dt.datetime.fromisoformat(text)
    for text in (
        "0001-01-01",
        "1969-12-31 23:59:59.999000",
        "2026-11-21",
        "2026-11-21 00:00:00.000001",
        "2026-11-21 10:30:00.250000",
        "9999-12-31 23:59:59.999999",
    )
]


@st.composite
def _moment_texts(draw: st.DrawFn, *, zoned: bool) -> tuple[str, Fraction]:
    moment = draw(st.sampled_from(MOMENTS))
    form = draw(st.sampled_from(["date", "day", "time", "text", *(["Z", "zone"] if zoned else [])]))
    if form in {"date", "day"}:
        text = quoted(str(moment.date()))
        return (
            f"DATE {text}" if form == "date" else text,
            _seconds(dt.datetime.combine(moment.date(), dt.time())),
        )
    text = moment.isoformat(sep=draw(st.sampled_from("T ")))
    if form == "zone" and 1 < moment.year < 9999:
        text = (moment + dt.timedelta(hours=5, minutes=30)).isoformat() + "+05:30"
    elif form in {"Z", "zone"}:
        text += "Z"
    word = draw(st.sampled_from(["TIMESTAMP ", "timestamp", ""]))
    return word + quoted(text), _seconds(moment)


def _moments(
    name: str, *, per_second: int, zoned: bool, path: tuple[str, ...] = (), text: str = ""
) -> Domain:
    return Domain(
        text=text or name,
        path=path or (name,),
        values=st.sampled_from(MOMENTS).map(lambda moment: int(_seconds(moment) * per_second // 1)),
        literals=_moment_texts(zoned=zoned),
        meaning=lambda ticks: Fraction(ticks, per_second),
    )


WORDS = ["", "a", "ab", "A", "b%", "a_b", "a\nb", "it's", "\\", "é", "日本", "\U0001f600", "\uffff", "x" * 70]


def _words(text: str, path: tuple[str, ...]) -> Domain:
    words = st.sampled_from(WORDS)
    return Domain(
        text=text,
        path=path,
        values=words,
        literals=words.map(lambda word: (quoted(word), word.encode())),
        meaning=str.encode,
    )


_BYTES = st.sampled_from([b"", b"\x00", b"\x00\xff", b"ab", b"\xff", b"\xff" * 70])
_DAYS = st.sampled_from(sorted({moment.date() for moment in MOMENTS}))
DOMAINS = [
    Domain(
        text="flag",
        path=("flag",),
        values=st.booleans(),
        literals=st.booleans().map(lambda truth: (str(truth), truth)),
        meaning=bool,
        ordered=False,
    ),
    *(_integers(name) for name in BOUNDS),
    _floats("f32", np.float32),
    _floats("f64", np.float64),
    _decimals("price", 5, 2),
    _decimals("wide", 38, 0),
    _words("word", ("word",)),
    Domain(
        text="raw",
        path=("raw",),
        values=_BYTES,
        literals=_BYTES.map(lambda each: (f"X'{each.hex()}'", each)),
        meaning=bytes,
    ),
    Domain(
        text="day",
        path=("day",),
        values=_DAYS,
        literals=_DAYS.flatmap(
            lambda day: st.sampled_from([(f"DATE '{day}'", day), (f"'{day}'", day), (f"date  '{day}'", day)])
        ),
        meaning=lambda day: day,
    ),
    _moments("at", per_second=10**6, zoned=True),
    _moments("at_ms", per_second=10**3, zoned=True),
    _moments("clock", per_second=10**6, zoned=False),
    _moments("clock_ms", per_second=10**3, zoned=False),
    _integers("odd", path=('an "odd" name',), text='"an ""odd"" name"'),
    _integers("n", path=("place", "n"), text="place.n"),
    _words('"place".inner.word', ("place", "inner", "word")),
    _moments("in", per_second=10**3, zoned=True, path=("place", "inner", "in"), text='place.inner."in"'),
]
WORD_DOMAINS = [domain for domain in DOMAINS if domain.meaning is str.encode]
FLAT = {domain.path[0]: domain for domain in DOMAINS if len(domain.path) == 1}


def rows(columns: tuple[str, ...] = tuple(TYPES)) -> st.SearchStrategy[Row]:
    """A row: any value may be null, structs and their members too."""
    inner = st.fixed_dictionaries(
        {"word": st.none() | st.sampled_from(WORDS), "in": st.none() | DOMAINS[-1].values}
    )
    special = {
        "tags": st.lists(st.sampled_from(WORDS), max_size=2),
        "place": st.fixed_dictionaries(
            {"n": st.none() | st.integers(-2, 2), "inner": st.none() | inner},
        ),
    }
    return st.fixed_dictionaries(
        {name: st.none() | (special[name] if name in special else FLAT[name].values) for name in columns}
    )


def table_of(rows_: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows_, SCHEMA.to_arrow())
