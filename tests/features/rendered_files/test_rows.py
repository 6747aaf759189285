"""The rows of rendered files are those that pages of rows have, with the same access at the same version."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from app.features.rendered_files.service.data_file import DataFileRendering
from app.features.rendered_files.values import RenderedRows
from app.infra.files.checksums import HashingSink
from app.kernel.format.errors import GrantNotApplicable
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
    """Files have the bytes of a uuid."""
    plain = [
        {name: value.bytes if isinstance(value, UUID) else value for name, value in each.items()}
        for each in rows
    ]
    return sorted(repr(sorted(each.items())) for each in plain)


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


EVERY_TYPE: dict[str, tuple[str, list[Any]]] = {
    "flag": ("boolean", [True, False, None]),
    "small": ("int8", [-128, 127, None]),
    "short": ("uint16", [0, 65535, None]),
    "wide": ("uint32", [0, 4294967295, None]),
    "number": ("double", [1.5, -0.0, None]),
    "single": ("float", [0.25, None, 3.0]),
    "price": ("decimal(9,2)", ["1.10", "-99.99", None]),
    "day": ("date", ["1969-12-31", "2026-11-29", None]),
    "at": ("timestamp(ms)", ["1960-01-01T00:00:00.001Z", "2026-11-29T00:00:00Z", None]),
    "local": ("timestamp_ntz", ["2026-11-29T00:00:00", None, "1999-01-01T00:00:00"]),
    "raw": ("binary", ["AAEC", None, ""]),
    "mark": ("uuid", ["01234567-89ab-cdef-0123-456789abcdef", None, "00000000-0000-0000-0000-000000000000"]),
    "tags": ("list<string>", [["a", None], [], None]),
    "sizes": ("map<string, int32>", [{"a": 1}, {}, None]),
    "place": (
        "struct<x: int32, y: list<struct<z: string>>>",
        [{"x": 1, "y": [{"z": "q"}]}, {"x": None, "y": None}, None],
    ),
}


def test_every_type_equals_pages(renderer: Renderer) -> None:
    renderer.register(
        "types", {"id": "int64", **{name: kind for name, (kind, _) in EVERY_TYPE.items()}}, record_key=["id"]
    )
    renderer.write(
        "types",
        [{"id": n, **{name: values[n % 3] for name, (_, values) in EVERY_TYPE.items()}} for n in range(9)],
    )
    renderer.write("types", [{"id": 4}], "delete")
    check(
        renderer,
        "types",
        range(1, 3),
        (
            RowAccess(where=("id < 7",)),
            RowAccess(where=("short = 65535", "wide = 0"), masked=("short", "place")),
            RowAccess(masked=tuple(EVERY_TYPE)),
            RowAccess(masked=("id", *EVERY_TYPE)),
        ),
    )


def test_evolved_schemas_equal_pages_and_an_added_column_renders_nothing_again(renderer: Renderer) -> None:
    renderer.register(
        "evolved", {"id": "int64", "a": "int32", "b": "string", "c": "float"}, record_key=["id"]
    )
    renderer.write("evolved", [{"id": n, "a": n, "b": f"b{n}", "c": n / 2} for n in range(20)])
    access = RowAccess(where=("a > 3",), masked=("b",))
    before = renderer.require("evolved", access)
    renderer.change("evolved", {"kind": "add", "field": {"name": "d", "type": "string"}})
    assert [each.path for each in renderer.require("evolved", access)] == [each.path for each in before]
    renderer.write(
        "evolved", [{"id": n, "a": n, "b": f"later{n}", "c": 1.5, "d": "d"} for n in range(15, 30)]
    )
    renderer.change("evolved", {"kind": "rename", "name": "b", "to": "e"})
    renderer.change("evolved", {"kind": "widen", "name": "a", "type": "int64"})
    renderer.change("evolved", {"kind": "drop", "name": "c"})
    renderer.change("evolved", {"kind": "add", "field": {"name": "c", "type": "string"}})
    renderer.write("evolved", [{"id": n, "a": 2**40, "e": "e", "c": "text"} for n in range(25, 40)])
    last = renderer.dataset("evolved").version
    accesses = (
        EVERYTHING,
        RowAccess(where=("a > 3",)),
        RowAccess(masked=("e",)),
        RowAccess(where=("c IS NULL",)),
        RowAccess(masked=("id", "a", "c", "d", "e")),
    )
    for version in range(1, last + 1):
        check(renderer, "evolved", range(version, version + 1), tuple(fitting(renderer, accesses, version)))


def fitting(renderer: Renderer, accesses: tuple[RowAccess, ...], version: int) -> list[RowAccess]:
    """Those that have a meaning at the version."""
    result = []
    for access in accesses:
        try:
            renderer.require("evolved", access, version)
        except GrantNotApplicable:
            continue
        result.append(access)
    assert result
    return result


def test_table_without_rows_has_no_files(renderer: Renderer) -> None:
    renderer.register("empty", COLUMNS, record_key=["id"])
    assert renderer.require("empty", EVERYTHING) == []
    renderer.write("empty", [row(1), row(2)])
    renderer.write("empty", [{"id": 1}, {"id": 2}], "delete")
    for version in range(3):
        assert len(renderer.rows("empty", EVERYTHING, version)) == (2 if version == 1 else 0)


def test_file_that_bounds_exclude_is_not_read(renderer: Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    renderer.register("orders", COLUMNS, record_key=["place", "id"], partition_by=["place"])
    renderer.write("orders", [row(number) for number in range(60)])
    written: list[str] = []
    write = DataFileRendering.write

    def counted(rendering: DataFileRendering, sink: HashingSink) -> RenderedRows:
        written.append(rendering.source.slot.partition_path)
        return write(rendering, sink)

    monkeypatch.setattr(DataFileRendering, "write", counted)
    access = RowAccess(where=("place = 'FR'",))
    assert [file.row_count for file in renderer.require("orders", access)] == [20]
    assert written == ["place=FR"] or written == ["FR"]
    # The version has a file of which no row is visible: that is known from then on.
    none = RowAccess(where=("place = 'FR' AND n = 4 AND secret = 'text 5'",))
    assert renderer.require("orders", none) == []
    count = len(written)
    assert renderer.require("orders", none) == []
    assert len(written) == count
