"""What reads of a dataset return: the bounds of its feed, pages of changes and of rows, entries of its timeline."""

from __future__ import annotations

import msgspec
import pyarrow as pa


class RowPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of the table at `version`, under the schema it had then; every page of one walk is of the same version."""

    rows: pa.Table
    version: int
    schema_id: int
    next_page_token: str | None
