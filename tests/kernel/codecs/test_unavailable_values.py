"""Values that Debezium has not read are never stored."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest

from app.kernel.codecs import Format
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.change_schema import change_schema
from tests.kernel.codecs.changes import ndjson, op_rows, stepwise
from tests.kernel.codecs.samples import schema_of

P: Final = "__debezium_unavailable_value"
BASE64: Final = base64.b64encode(P.encode()).decode()
COLUMNS: Final = {
    "text": ("string", P, "old"),
    "json": ("string", json.dumps({P: P}, separators=(",", ":")), "{}"),
    "octets": ("binary", BASE64, "AP8="),
    "texts": ("list<string>", [P], ["a", None]),
    "blobs": ("list<binary>", [BASE64], ["AP8="]),
    "numbers": ("list<int32>", list(P.encode()), [1, 2]),
    "longs": ("list<int64>", list(P.encode()), []),
    "map": ("map<string, string>", {P: P}, {"k": "v"}),
}
FIELDS: Final = {name: kind for name, (kind, _, _) in COLUMNS.items()}
SCHEMA: Final = change_schema(schema_of({"id": "int64!", **FIELDS}), ["id"])


def read(*records: Any, schema: Any = SCHEMA) -> list[tuple[str, dict[str, Any]]]:
    """The changes, from compact JSON as Debezium writes it."""
    text = b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)
    return op_rows(stepwise(Format.NDJSON, text, schema))


@pytest.mark.parametrize("name", FIELDS)
def test_update_has_the_value_of_the_row_before_it(name: str) -> None:
    _, placeholder, old = COLUMNS[name]
    before, after = {"id": 1, name: old}, {"id": 1, name: placeholder}
    expected = read({"op": "u", "before": before, "after": before})
    assert read({"op": "u", "before": before, "after": after}) == expected
    wrapped = {"schema": {}, "payload": {"op": "u", "before": before, "after": after}}
    assert read(wrapped) == expected


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("before", [None, "placeholder", "absent"])
def test_update_without_the_value_is_refused(name: str, before: str | None) -> None:
    placeholder = COLUMNS[name][1]
    old = {None: None, "placeholder": {"id": 1, name: placeholder}, "absent": {"id": 1}}[before]
    with pytest.raises(SchemaMismatch) as caught:
        read(
            {"op": "c", "before": None, "after": {"id": 2}},
            {"op": "u", "before": old, "after": {"id": 1, name: placeholder}},
        )
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == f"/rows/1/after/{name}"
    assert "REPLICA IDENTITY FULL" in error["detail"]


@pytest.mark.parametrize("name", FIELDS)
def test_new_and_deleted_rows_have_null(name: str) -> None:
    row = {"id": 1, name: COLUMNS[name][1]}
    assert read({"op": "r", "before": None, "after": row}) == [("+A", {"id": 1})]
    assert read({"op": "d", "before": row, "after": None}) == [("-R", {"id": 1})]


def test_required_column_of_a_new_row_is_named() -> None:
    schema = change_schema(schema_of({"id": "int64!", "text": "string!"}), ["id"])
    with pytest.raises(SchemaMismatch, match='"text"'):
        read({"op": "c", "before": None, "after": {"id": 1, "text": P}}, schema=schema)


def test_text_is_stored_outside_of_envelopes() -> None:
    [(_, row)] = op_rows(stepwise(Format.NDJSON, ndjson({"op": "+A", "row": {"id": 1, "text": P}}), SCHEMA))
    assert row["text"] == P


def test_longer_text_with_the_placeholder_is_stored() -> None:
    [(_, row)] = read({"op": "c", "before": None, "after": {"id": 1, "text": P + "s"}})
    assert row["text"] == P + "s"


def test_uuids_are_those_that_java_makes_of_the_text() -> None:
    # java.util.UUID.nameUUIDFromBytes("__debezium_unavailable_value".getBytes())
    schema = change_schema(schema_of({"id": "int64!", "ids": "list<uuid>", "texts": "list<string>"}), ["id"])
    for name in ("ids", "texts"):
        row = {"id": 1, name: ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]}
        assert read({"op": "r", "before": None, "after": row}, schema=schema) == [("+A", {"id": 1})]
