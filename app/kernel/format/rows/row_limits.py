"""The limits of the rows of one write."""

from __future__ import annotations

from typing import Final

import msgspec

from app.kernel.format.errors import RowTooLarge, TooManyRows

EXCERPT_BYTES: Final = 64 * 1024
_LARGE_VALUES: Final = "store large values elsewhere, and send links to them"


class RowLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one write.

    `row_bytes_max`: the bytes of a row: of its text in JSON, NDJSON and CSV, in memory in Arrow and Parquet.
    `rows_max`: the number of rows, good and bad.
    """

    row_bytes_max: int = 16 * 1024 * 1024
    rows_max: int = 100_000_000

    def check_rows(self, rows: int) -> None:
        """Raises TooManyRows for a write with this number of rows."""
        if rows > self.rows_max:
            raise TooManyRows(
                f"the write has more than {self.rows_max} rows: send them as several writes",
                limit_rows=self.rows_max,
            )

    def too_large(self) -> str:
        """What is wrong with a row that is too large, and what to do."""
        return f"the row has more than {self.row_bytes_max} bytes: {_LARGE_VALUES}"

    def refusal(self, row: int, pointer: str, line: int | None = None, *, hint: str = "") -> RowTooLarge:
        """The error for a row that is too large. `pointer`: of the row. `line`: of a text, where it is known."""
        place = f"row {row}" if line is None else f"row {row} (line {line})"
        facts = {} if line is None else {"line": line}
        return RowTooLarge(
            f"{place} has more than {self.row_bytes_max} bytes: {_LARGE_VALUES}{hint}",
            limit_bytes=self.row_bytes_max,
            row=row,
            pointer=pointer,
            **facts,
        )

    def refusal_among(self, first_row: int, rows: int, pointer: str) -> RowTooLarge:
        """The error for a row that is too large, and only known to be one of several. `pointer`: of all rows."""
        return RowTooLarge(
            f"one of the rows {first_row} to {first_row + rows - 1} has more than {self.row_bytes_max} bytes: "
            f"{_LARGE_VALUES}",
            limit_bytes=self.row_bytes_max,
            pointer=pointer,
        )


DEFAULT_LIMITS: Final = RowLimits()
