"""The files of a table as bars: a row a partition or bucket, a bar a file as wide as its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from markupsafe import Markup

from app.features.console.rendering import counted

_WIDTH: Final = 1_000.0
_GAP: Final = 1.5
_TITLES_MAX: Final = 250
"""Of more files, bars have no title: the page would become too large."""
PATTERN: Final = Markup(
    '<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>'
    '<pattern id="deleted-rows" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<path d="M0 5L5 0M-1 1L1 -1M4 6L6 4" class="hatch"/></pattern></defs></svg>'
)
"""The hatching of deleted rows, which the bars of a page share."""


class FileRow(msgspec.Struct, kw_only=True):
    """The files of a partition, or of a bucket of a table without partitions.

    `label`: its name. `partition`: the path of the partition, None for a bucket. `read`: how many of its files a filter
    opens; None without a filter.
    """

    label: str
    partition: str | None
    base: list[Mapping[str, Any]] = []
    others: list[Mapping[str, Any]] = []
    read: int | None = None

    @property
    def rows(self) -> int:
        """Stored rows of base files, deleted ones included."""
        return sum(each["rows"] for each in self.base)

    @property
    def live(self) -> int:
        """Rows of base files that are not deleted."""
        return sum(each["live_rows"] for each in self.base)

    @property
    def deleted_rows(self) -> int:
        """Rows of base files that are deleted and still stored."""
        return self.rows - self.live

    @property
    def log_rows(self) -> int:
        """Rows in logs and postponed writes."""
        return sum(each["rows"] for each in self.others if each["kind"] != "tombstone")

    @property
    def logs(self) -> int:
        """The number of its logs and postponed writes."""
        return sum(each["kind"] != "tombstone" for each in self.others)

    @property
    def size_bytes(self) -> int:
        """The size of all of its files."""
        return sum(each["size_bytes"] for each in (*self.base, *self.others))

    @property
    def files(self) -> int:
        """The number of its files."""
        return len(self.base) + len(self.others)


def file_rows(files: Iterable[Mapping[str, Any]], *, by_partition: bool) -> list[FileRow]:
    """The files by partition, or by bucket if the table has no partitions, in the order of the names of these."""
    rows: dict[tuple[str, int], FileRow] = {}
    for file in files:
        key = (file["partition"], 0) if by_partition else ("", file["bucket"])
        row = rows.get(key)
        if row is None:
            label = file["partition"] if by_partition else f"bucket {file['bucket']}"
            row = rows[key] = FileRow(
                label=label or "no partition",
                partition=file["partition"] if by_partition else None,
                base=[],
                others=[],
            )
        (row.base if file["kind"] == "base" else row.others).append(file)
        if file["read"] is not None:
            row.read = (row.read or 0) + file["read"]
    for row in rows.values():
        row.base.sort(key=lambda file: (file["written_version"] or 0, file["name"]))
    return [rows[key] for key in sorted(rows)]


def bars_of(rows: Sequence[FileRow], columns: Sequence[str]) -> list[Markup]:
    """The bars of each row, all on one scale. `columns`: whose bounds a bar shows on hover."""
    widest = max((max(row.rows, row.log_rows) for row in rows), default=0) or 1
    titles = sum(row.files for row in rows) <= _TITLES_MAX
    return [_bars(row, widest, columns if titles else None) for row in rows]


def partition_bar(partition: Mapping[str, Any], widest: int) -> Markup:
    """The bar of a whole partition, as GET …/partitions has it: its rows below, those of its logs above."""
    shapes = [_rect(0, 9, _width(partition["rows"], widest), 18, "file")]
    pending = partition["log_rows"] + partition["postponed_rows"]
    if pending:
        shapes.append(_rect(0, 0, _width(pending, widest), 6, "log"))
    label = (
        f"{counted(partition['rows'], 'row')} in {counted(partition['base_files'], 'file')}, "
        f"{counted(pending, 'row')} in logs"
    )
    return _svg(label, shapes)


def bounds_text(file: Mapping[str, Any], columns: Sequence[str]) -> str:
    """The least and the greatest value of these columns in a file, as far as they are known."""
    statistics = file["statistics"] or {}
    parts = [
        f"{name} {_text(of_column['minimum'])} … {_text(of_column['maximum'])}"
        for name in columns
        if (of_column := statistics.get(name)) and of_column.get("minimum") is not None
    ]
    return ", ".join(parts)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else text[:39] + "…"


def _bars(row: FileRow, widest: int, columns: Sequence[str] | None) -> Markup:
    shapes, x = [], 0.0
    # Many narrow bars share the width: gaps between them would hide them.
    gap = _GAP if len(row.base) <= 120 else 0.0
    for file in row.base:
        width = _width(file["rows"], widest)
        live = width * (file["live_rows"] / file["rows"] if file["rows"] else 1.0)
        pale = " skipped" if file["read"] is False else ""
        bar = [_rect(x, 9, max(live - gap, 0.3), 18, f"file{pale}")] if live else []
        if width - live > 0:
            bar.append(_rect(x + live, 9, max(width - live - gap, 0.3), 18, f"deleted{pale}"))
        shapes.append(_with_title(bar, file, columns))
        x += width
    x = 0.0
    for file in row.others:
        width = _width(file["rows"], widest)
        pale = " skipped" if file["read"] is False else ""
        name = "deleted" if file["kind"] == "tombstone" else "log"
        bar = [_rect(x, 0, max(width - gap, 0.3), 6, f"{name}{pale}")]
        shapes.append(_with_title(bar, file, columns))
        x += width
    rows = f"{counted(row.live, 'row')}, {row.deleted_rows:,} deleted, {row.log_rows:,} in logs"
    label = f"{row.label}: {counted(row.files, 'file')}, {rows}"
    return _svg(label, shapes)


def _with_title(bar: Sequence[Markup], file: Mapping[str, Any], columns: Sequence[str] | None) -> Markup:
    shapes = Markup("").join(bar)
    if columns is None:
        return shapes
    bounds = bounds_text(file, columns)
    rows = f"{file['live_rows']:,} of {counted(file['rows'], 'row')}"
    title = f"{file['kind']}, {rows}, v{file['written_version'] or 0:,}"
    return Markup("<g><title>{}</title>{}</g>").format(f"{title}, {bounds}" if bounds else title, shapes)


def _width(rows: int, widest: int) -> float:
    return max(_WIDTH * rows / widest, 1.0) if rows else 0.0


def _rect(x: float, y: int, width: float, height: int, name: str) -> Markup:
    # By an attribute: in a file of styles, the address would be that of the file.
    pattern = Markup(' fill="url(#deleted-rows)"') if name.startswith("deleted") else ""
    return Markup('<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" class="{}"{}/>').format(
        x, y, width, height, name, pattern
    )


def _svg(label: str, shapes: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="files" viewBox="0 0 1000 28" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(label, Markup("").join(shapes))
