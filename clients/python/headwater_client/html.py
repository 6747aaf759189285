"""How notebooks show values of the client: `_repr_html_`, which Jupyter and others call. Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

ROWS_MAX: Final = 20
COLUMNS_MAX: Final = 50
TEXT_MAX: Final = 200
"""How much is shown: rows of a table, columns of a row, characters of a value."""


def html_table(caption: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """A table of the first rows, with a caption.

    `columns`: by default those of the shown rows, in the order in which the rows have them.
    """
    shown = rows[:ROWS_MAX]
    names = list(dict.fromkeys(name for row in shown for name in row) if columns is None else columns)
    hidden = []
    if len(rows) > len(shown):
        hidden.append(f"{len(rows) - len(shown):,} more rows")
    if len(names) > COLUMNS_MAX:
        hidden.append(f"{len(names) - COLUMNS_MAX:,} more columns")
    names = names[:COLUMNS_MAX]
    lines = [
        "<table>",
        f"<caption>{escape('; '.join([caption, *hidden]))}</caption>",
        _line("th", names),
        *(_line("td", [_text(row.get(name)) for name in names]) for row in shown),
        "</table>",
    ]
    return "\n".join(lines)


def _line(tag: str, texts: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts) + "</tr>"


def _text(value: Any) -> str:
    """A value as text; null is shown as nothing."""
    text = "" if value is None else str(value)
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


class RowsHtml:
    """Shows a page of rows."""

    __slots__ = ()
    rows: tuple[dict[str, Any], ...]
    version: int
    next_page_token: str | None

    def _repr_html_(self) -> str:
        more = "" if self.next_page_token is None else ", and more pages"
        return html_table(f"{len(self.rows):,} rows of version {self.version}{more}", self.rows)


class ChangesHtml:
    """Shows a page of the feed."""

    __slots__ = ()
    changes: tuple[Any, ...]
    next_since: int | str
    pending: int

    def _repr_html_(self) -> str:
        caption = f"{len(self.changes):,} changes; the next position is {self.next_since}, {self.pending:,} are pending"
        used = {name for each in self.changes[:ROWS_MAX] for name in each.row}
        # As in Arrow data: a system column whose name the dataset uses has a prefix.
        offset, op, version = (
            f"_hw_{name}" if name in used else name for name in ("offset", "op", "version")
        )
        rows = [
            {offset: each.offset, op: each.op, version: each.version, **each.row} for each in self.changes
        ]
        return html_table(caption, rows)


class DatasetHtml:
    """Shows a dataset: its columns, and which of them identify a row."""

    __slots__ = ()
    name: str
    version: int
    record_key: tuple[str, ...]
    schema: Any

    def _repr_html_(self) -> str:
        fields = [
            {
                "column": field.name,
                "type": field.type,
                "nullable": "yes" if field.nullable else "no",
                "key": "yes" if field.name in self.record_key else "",
                "doc": field.doc,
            }
            for field in self.schema.fields
        ]
        return html_table(f"{self.name}, version {self.version}", fields)
