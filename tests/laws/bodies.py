"""Rows of writes in the forms that the service accepts."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tests.laws.model import KEPT
from tests.laws.tables import defined, python_row

Json = dict[str, Any]
FORMATS: Final = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
"""Content types of raw bodies, by the name of the format."""


_PLACEHOLDERS: Final[dict[str, Any]] = {"tags": [KEPT], "marks": {KEPT: KEPT}}


def forms_of(write: Json) -> tuple[str, ...]:
    """Those of FORMATS that have the rows of the write: only an envelope of Debezium can keep a field."""
    if write["operation"] != "changelog" or all(KEPT not in row.values() for _, row in write["rows"]):
        return tuple(FORMATS)
    return ("ndjson",)


def records(write: Json, dice: random.Random) -> list[Json]:
    """The rows as objects. Nulls are left out or written, and changes are those of a feed or Debezium's."""
    if write["operation"] == "changelog":
        return [_change(op, _record(row, dice), dice) for op, row in write["rows"]]
    return [_record(row, dice) for row in write["rows"]]


def _record(row: Json, dice: random.Random) -> Json:
    if dice.random() < 0.5:
        return row
    return {name: value for name, value in row.items() if value is not None}


def _change(op: str, row: Json, dice: random.Random) -> Json:
    if KEPT in row.values():
        after = {
            name: _PLACEHOLDERS.get(name, KEPT) if value == KEPT else value for name, value in row.items()
        }
        return {"op": "u", "before": None, "after": after}
    if dice.random() < 0.6 or op in ("-C", "+C"):
        return {"op": op, "row": row}
    if op == "+A":
        return {"op": dice.choice("cr"), "before": None, "after": row}
    return {"op": "d", "before": row, "after": None}


def body(write: Json, form: str, registration: Json, dice: random.Random) -> bytes:
    """The rows in a form of FORMATS."""
    if form == "ndjson":
        lines = [json.dumps(each, ensure_ascii=False) + "\n" for each in records(write, dice)]
        return "".join(lines).encode()
    changes = write["operation"] == "changelog"
    rows = [{"op": op, **row} for op, row in write["rows"]] if changes else list(write["rows"])
    names = list(dict.fromkeys(name for row in rows for name in row))
    if form == "csv":
        return _csv(names, rows)
    kinds = {field.name: field.type for field in defined(registration).schema.to_arrow()}
    schema = pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in names])
    types = {"op": "string"} | {each["name"]: each["type"] for each in registration["schema"]["fields"]}
    table = pa.Table.from_pylist([python_row(types, row) for row in rows], schema=schema)
    out = io.BytesIO()
    if form == "parquet":
        pq.write_table(table, out)
    else:
        with pa.ipc.new_stream(out, schema) as writer:
            writer.write_table(table, max_chunksize=dice.choice((1, 3, 1000)))
    return out.getvalue()


def _csv(names: Sequence[str], rows: Sequence[Json]) -> bytes:
    """Nulls as nothing at all, the empty text in quotation marks, nested values as JSON."""
    lines = [",".join(names), *(",".join(_cell(row.get(name)) for name in names) for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return '"' + text.replace('"', '""') + '"'
