"""Random values of columns as JSON, the ends of each type among them."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from app.kernel.format.schema.types import DataType, List, Map, Struct, parse_type

_TEXTS: Final = ("", "a", "A", "ü", "漢字", "it's", 'a "quote"', "tab\tline\n", "x" * 300, "😀")
_MOMENTS: Final = (
    "0001-01-01T00:00:00",
    "1969-12-31T23:59:59.999",
    "1970-01-01T00:00:00",
    "2026-11-21T10:00:00.25",
    "9999-12-31T23:59:59.999",
)
_DAYS: Final = ("0001-01-01", "1969-12-31", "1970-01-01", "2026-02-28", "9999-12-31")
_NULLS: Final = 0.15
_INTEGERS: Final = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)},
}
FLAT: Final = {
    "yes": "boolean",
    **{f"c_{name}": name for name in _INTEGERS},
    "c_float": "float",
    "c_double": "double",
    "small": "decimal(9, 2)",
    "middle": "decimal(18, 6)",
    "large": "decimal(38, 10)",
    "text": "string",
    "bytes": "binary",
    "uid": "uuid",
    "day": "date",
    "at": "timestamp",
    "at_ms": "timestamp(ms)",
    "local": "timestamp_ntz",
    "local_ms": "timestamp_ntz(ms)",
}
"""A column of each flat type."""


def value_of(dice: random.Random, kind: str) -> Any:
    """A value of a type, or null."""
    return _value(dice, parse_type(kind))


def _value(dice: random.Random, kind: DataType, *, nullable: bool = True) -> Any:
    if nullable and dice.random() < _NULLS:
        return None
    match kind:
        case List():
            return [_value(dice, kind.element) for _ in range(dice.randrange(3))]
        case Map():
            keys = [_value(dice, kind.key, nullable=False) for _ in range(dice.randrange(3))]
            return {_key(key): _value(dice, kind.value) for key in keys}
        case Struct():
            return {name: _value(dice, member) for name, member in kind.members}
    return _flat(dice, str(kind))


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key).lower()


def _flat(dice: random.Random, kind: str) -> Any:
    if kind in _INTEGERS:
        low, high = _INTEGERS[kind]
        return dice.choice((low, high, 0, dice.randint(low, high)))
    if kind.startswith("decimal"):
        return _decimal(dice, kind)
    return _MAKERS[kind.removesuffix("(ms)")](dice)


def _decimal(dice: random.Random, kind: str) -> str:
    precision, scale = (int(part) for part in kind.removeprefix("decimal(").removesuffix(")").split(","))
    limit = 10**precision - 1
    digits = str(abs(number := dice.choice((limit, -limit, 0, 1, -1, dice.randint(-limit, limit)))))
    digits = digits.rjust(scale + 1, "0")
    return ("-" if number < 0 else "") + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


def _one_of(values: Sequence[Any]) -> Callable[[random.Random], Any]:
    return lambda dice: dice.choice(values)


_MAKERS: Final[dict[str, Callable[[random.Random], Any]]] = {
    "boolean": _one_of((True, False)),
    "float": _one_of((0.0, 1.5, -0.1, 3.4028234663852886e38, 1e-45)),
    "double": _one_of((0.0, -0.0, 0.1, -1.7976931348623157e308, 5e-324)),
    "string": _one_of(_TEXTS),
    "binary": lambda dice: base64.b64encode(dice.randbytes(dice.choice((0, 1, 20)))).decode(),
    "uuid": lambda dice: str(UUID(bytes=dice.randbytes(16))),
    "date": _one_of(_DAYS),
    "timestamp": lambda dice: dice.choice(_MOMENTS) + "Z",
    "timestamp_ntz": _one_of(_MOMENTS),
}
