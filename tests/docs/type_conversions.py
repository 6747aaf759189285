"""The table of types, as it is published.

python -m tests.docs.type_conversions > docs/type-conversions.md
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from app.kernel.codecs.arrow.arrow_casts import is_exact, is_lossless
from app.kernel.format.schema.types import KINDS, Form, Timestamp, parse_type

_PAGE: Final = Path(__file__).with_name("type-conversions.md")
_COLUMNS: Final = (
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64) if (sign, bits) != ("u", 64)),
    "float",
    "double",
    "decimal(9, 2)",
    "string",
    "binary",
    "uuid",
    "date",
    "timestamp",
    "timestamp(ms)",
    "timestamp_ntz",
    "timestamp_ntz(ms)",
)
SOURCES: Final = {
    "boolean": pa.bool_(),
    **{
        f"{sign}int{bits}": pa.type_for_alias(f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(9, 2)": pa.decimal128(9, 2),
    "other decimals": pa.decimal128(38, 10),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.uuid(),
    "date": pa.date32(),
    **{f"timestamp in {unit}": pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp_ntz in {unit}": pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    "times of day": pa.time64("us"),
    "durations": pa.duration("us"),
}


def published() -> str:
    """The text of docs/type-conversions.md."""
    return _PAGE.read_text(encoding="utf-8").format(
        kinds="".join(_kind_rows()), refused="".join(_refused_rows()), columns="".join(_column_rows())
    )


def _kind_rows() -> Iterator[str]:
    yield f"| values | type of a new column | {' | '.join(form.value for form in Form)} | JSON, CSV |\n"
    yield f"|---|---|{'---|' * len(Form)}---|\n"
    for kind in KINDS:
        names = [", ".join(f"`{name}`" for name in kind.names.get(form, ())) for form in Form]
        type_ = f"`{kind.type}`" if kind.type else "refused"
        yield f"| {kind.name} | {type_} | {' | '.join(names)} | {kind.text} |\n".replace(
            "|  |", "| |"
        ).replace("|  |", "| |")


def _refused_rows() -> Iterator[str]:
    for kind in KINDS:
        if kind.refused:
            yield f"| {kind.name} | {'' if kind.type else 'all: '}{kind.refused} |\n"


def _column_rows() -> Iterator[str]:
    for text in _COLUMNS:
        column = parse_type(text)
        every = [name for name, source in SOURCES.items() if is_lossless(source, column)]
        some = [name for name, source in SOURCES.items() if name not in every and is_exact(source, column)]
        unit = " of whole milliseconds" if isinstance(column, Timestamp) and column.unit == "ms" else ""
        yield f"| `{text}` | {', '.join(every)} | {', '.join(some)}{unit if some else ''} |\n"


if __name__ == "__main__":
    print(published(), end="")
