"""The values that reads return."""

from __future__ import annotations

import msgspec
import pyarrow as pa


class RowPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of the table at `version`, under its schema of then. All pages of a list are of the same version."""

    rows: pa.Table
    version: int
    schema_id: int
    next_page_token: str | None
