"""The rows of rendered files are those that pages of rows have, with the same access at the same version."""

from __future__ import annotations

from typing import Any

import pytest

from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.features.rendered_files.conftest import Renderer, Row

COLUMNS = {"id": "int64", "place": "string", "n": "int32", "secret": "string", "at": "timestamp"}
ACCESSES = (
    EVERYTHING,
    RowAccess(where=("n < 40",)),
    RowAccess(masked=("secret",)),
    RowAccess(where=("place = 'DE'", "secret = 'text 7'"), masked=("secret", "id")),
    RowAccess(where=("n > 1000",)),
)


def row(number: int) -> Row:
    return {
        "id": number,
        "place": ("DE", "FR", "a/b")[number % 3],
        "n": None if number % 7 == 0 else number,
        "secret": f"text {number % 10}",
        "at": f"2026-11-29T08:00:{number % 60:02}Z",
    }


def ordered(rows: list[Row]) -> list[str]:
    return sorted(repr(sorted(each.items())) for each in rows)


def check(renderer: Renderer, name: str, versions: range, accesses: tuple[RowAccess, ...] = ACCESSES) -> None:
    """Each version has the rows of `/rows`. A column that a data file lacks is null for readers of the table."""
    for version in versions:
        for access in accesses:
            expected = renderer.expected(name, access, version)
            rows = renderer.rows(name, access, version)
            names = list(expected[0]) if expected else []
            complete = [{column: each.get(column) for column in names} for each in rows]
            assert all(set(each) <= set(names) for each in rows)
            assert ordered(complete) == ordered(expected)


@pytest.mark.parametrize("settings", [{}, {"partition_by": ["place"], "record_key": ["place", "id"]}])
def test_rows_with_deletions_equal_pages(renderer: Renderer, settings: dict[str, Any]) -> None:
    renderer.register("orders", COLUMNS, **{"record_key": ["id"], **settings})
    renderer.write("orders", [row(number) for number in range(100)])
    renderer.write("orders", [{**row(number), "secret": "later"} for number in range(0, 100, 9)])
    gone = [{"id": number, "place": row(number)["place"]} for number in range(5, 60, 5)]
    key = {"id", "place"} if settings else {"id"}
    renderer.write("orders", [{name: each[name] for name in key} for each in gone], "delete")
    check(renderer, "orders", range(1, 4))
