"""The JSON text of changes and rows in files. A separate module, because it imports polars, which needs memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from app.codecs.json.encode import encode_changes_json, encode_rows_json, encode_rows_ndjson


def encode_changes(events: pa.Table, *, symbols: Sequence[str], names: Mapping[str, str]) -> bytes:
    """Events, one JSON object per line, in the form of the feed's pages."""
    return encode_changes_json(events, as_ndjson=True, symbols=symbols, names=names)


def encode_rows(rows: pa.Table) -> bytes:
    """Rows, one JSON object per line, in the form of the table's pages."""
    return encode_rows_ndjson(rows)


def encode_members(rows: pa.Table) -> bytes:
    """Rows as the members of a JSON array, without its brackets."""
    return encode_rows_json(rows)[1:-1]
