"""The comparison finds every cell that differs, and no other."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest

from tests.open.comparison import check_equal
from tests.open.engines import CHDB, PYICEBERG

_MOMENT: Final = datetime(2026, 11, 21, 10, tzinfo=UTC)
_STRUCT: Final = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
# A type, a value of it, and another one.
_CELLS: Final[tuple[tuple[pa.DataType, Any, Any], ...]] = (
    (pa.bool_(), True, False),
    (pa.int32(), 0, None),
    (pa.float64(), 0.0, -0.0),
    (pa.decimal128(9, 2), Decimal("1.50"), Decimal("1.51")),
    (pa.string(), "", None),
    (pa.binary(), b"\x00", b""),
    (pa.binary(16), bytes(16), bytes(15) + b"\x01"),
    (pa.date32(), date(1, 1, 1), date(1, 1, 2)),
    (pa.timestamp("us", "UTC"), _MOMENT, _MOMENT.replace(microsecond=1)),
    (pa.timestamp("ms"), _MOMENT.replace(tzinfo=None), None),
    (pa.list_(pa.int32()), [], None),
    (pa.list_(pa.int32()), [1, None], [None, 1]),
    (pa.map_(pa.string(), pa.int32()), [("a", 1)], [("a", None)]),
    (_STRUCT, {"a": 1, "b": None}, {"a": 1, "b": []}),
    (_STRUCT, {"a": None, "b": None}, None),
)


def _table(kind: pa.DataType, *values: Any) -> pa.Table:
    return pa.table({"id": range(len(values)), "cell": pa.array(values, kind)})


@pytest.mark.parametrize(("kind", "one", "other"), _CELLS)
def test_cell_that_differs_is_found(kind: pa.DataType, one: Any, other: Any) -> None:
    expected = _table(kind, one, other, one)
    check_equal(PYICEBERG, expected.take([2, 0, 1]), expected)
    for found in (_table(kind, one, one, one), _table(kind, one, other), _table(kind, one, other, one, one)):
        with pytest.raises(AssertionError):
            check_equal(PYICEBERG, found, expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),  # noqa: DTZ001
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1)),  # noqa: DTZ001
        (1, True),
        ("1", 1),
        (1, "1"),
        (1, date(1970, 1, 2)),
    ],
)
def test_value_of_another_type_is_found(found: Any, expected: Any) -> None:
    with pytest.raises(AssertionError):
        check_equal(PYICEBERG, pa.table({"cell": [found]}), pa.table({"cell": [expected]}))


def test_engine_without_null_lists_and_structs_reads_empty_ones() -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    expected = _table(kind, None, {"a": 1, "b": None})
    found = _table(kind, {"a": None, "b": []}, {"a": 1, "b": []})
    check_equal(CHDB, found, expected)
    with pytest.raises(AssertionError):
        check_equal(PYICEBERG, found, expected)
