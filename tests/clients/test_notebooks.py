"""How notebooks show values of the client."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater_client import ArrowData, Change, ChangePage, Headwater
from headwater_client.html import COLUMNS_MAX, ROWS_MAX, TEXT_MAX, html_table
from headwater_client.models import RowsPage
from tests.support.html import texts_of

SCRIPT = "<script>alert(1)</script>"


def page(*rows: dict[str, Any], token: str | None = None) -> RowsPage:
    return RowsPage(rows=rows, version=3, schema_id=1, next_page_token=token)


def change(offset: int, row: dict[str, Any]) -> Change:
    return Change(
        offset=offset,
        op="+A",
        version=1,
        system_time=datetime(2026, 1, 1, tzinfo=UTC),
        event_time=None,
        corrects_offset=None,
        row=row,
    )


def test_a_page_of_rows() -> None:
    shown = page({"id": 1, "note": None}, {"id": 2, "note": SCRIPT, "more": [1]}, token="t")._repr_html_()
    assert texts_of(shown) == [
        ["2 rows of version 3, and more pages"],
        ["id", "note", "more"],
        ["1", "", ""],
        ["2", SCRIPT, "[1]"],
    ]


def test_a_page_of_changes_keeps_columns_of_the_dataset_apart() -> None:
    changes = (change(0, {"id": 1, "op": SCRIPT}),)
    shown = ChangePage(changes=changes, next_since=1, pending=4, earliest=0, schema_id=1)._repr_html_()
    assert texts_of(shown) == [
        ["1 changes; the next position is 1, 4 are pending"],
        ["offset", "_hw_op", "version", "id", "op"],
        ["0", "+A", "1", "1", SCRIPT],
    ]


def test_what_is_shown_is_bounded() -> None:
    rows = [{f"c{number}": "x" * 10_000 for number in range(COLUMNS_MAX + 5)}] * (ROWS_MAX + 7)
    caption, names, *lines = texts_of(html_table("rows", rows))
    assert caption == ["rows; 7 more rows; 5 more columns"]
    assert len(names) == COLUMNS_MAX
    assert len(lines) == ROWS_MAX
    assert {len(text) for line in lines for text in line} == {TEXT_MAX}


def test_arrow_data_show_their_first_rows() -> None:
    data = ArrowData(
        parts=tuple(stream(pa.table({"id": [part] * 15, SCRIPT: ["&"] * 15})) for part in range(3))
    )
    caption, names, *lines = texts_of(data._repr_html_())
    assert (caption, names) == (["the first 20 rows"], ["id", SCRIPT])
    assert lines == [["0", "&"]] * 15 + [["1", "&"]] * 5


def test_arrow_data_without_pyarrow_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = ArrowData(parts=(stream(pa.table({"id": [1]})),))
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    assert "pip install pyarrow" in data._repr_html_()


def stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_a_table_shows_what_would_be_read_without_a_request() -> None:
    with Headwater("http://127.0.0.1:1", "key") as headwater:
        shown = headwater.table("a<b", where="x > 1", limit=5)._repr_html_()
    assert texts_of(shown) == [
        ["table a<b: read with to_arrow(), to_pandas(), to_polars() or to_duckdb()"],
        ["option", "value"],
        ["where", "x > 1"],
        ["limit", "5"],
    ]


@example(rows=[{"\n": ""}])
@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(), max_size=3), max_size=3
    )
)
def test_every_text_is_shown_as_it_is(rows: list[dict[str, Any]]) -> None:
    _, names, *lines = texts_of(html_table("rows", rows))
    assert names == list(dict.fromkeys(name for row in rows for name in row))
    assert lines == [[str(row.get(name, "")) for name in names] for row in rows]
