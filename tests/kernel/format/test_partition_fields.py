"""Entries of `partition_by`: what they read, which of them a dataset may have, and the slots they lead to."""

from __future__ import annotations

import string
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.errors import InvalidDataset
from app.kernel.format.operation import Operation
from app.kernel.format.partition.fields import (
    PartitionSyntaxError,
    parse_partition,
    partition_name,
    partition_sources,
)
from app.kernel.format.rows.staging import split_by_slot, with_ops


@pytest.mark.parametrize(
    ("text", "path", "name", "canonical"),
    [
        ("country", ["country"], "country", "country"),
        (" b c ", ["b c"], "b c", "b c"),
        ("`a.b`", ["a.b"], "a.b", "`a.b`"),
        ("`day(ts)`", ["day(ts)"], "day(ts)", "`day(ts)`"),
        ("address.city", ["address", "city"], "address.city", "address.city"),
        ("address . `zip``code`", ["address", "zip`code"], "address.zip`code", "address.`zip``code`"),
        ("identity(x)", ["x"], "x", "x"),
        ("year(ts)", ["ts"], "ts_year", "year(ts)"),
        ("Month( ts )", ["ts"], "ts_month", "month(ts)"),
        ("day(`t s`)", ["t s"], "t s_day", "day(t s)"),
        ("hour(at.start)", ["at", "start"], "at.start_hour", "hour(at.start)"),
        ("bucket(16,id)", ["id"], "id_bucket", "bucket(16, id)"),
        ("truncate( 3 , name)", ["name"], "name_trunc", "truncate(3, name)"),
        ("day", ["day"], "day", "day"),
        ("größe", ["größe"], "größe", "größe"),
    ],
)
def test_partition_entry_is_parsed(text: str, path: list[str], name: str, canonical: str) -> None:
    field = parse_partition(text)
    assert (list(field.path), partition_name(field), field.text) == (path, name, canonical)
    assert parse_partition(field.text) == field


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a field"),
        ("  ", "expected a field"),
        ("a.", "expected a field"),
        (".a", "expected a field"),
        ("a..b", "expected a field"),
        ("a,b", "expected one field"),
        ("`a", "not closed"),
        ("a`b`", "expected a field"),
        ("week(ts)", "no transform 'week'; known are identity, year"),
        ("day(ts", "expected ')'"),
        ("day(ts))", "expected"),
        ("day()", "expected a field"),
        ("day(1, ts)", "expected one field"),
        ("day(ts) x", "expected"),
        ("bucket(id)", "takes a number"),
        ("bucket(0, id)", "takes a number"),
        ("bucket(-1, id)", "takes a number"),
        ("bucket(9999999999, id)", "takes a number"),
        ("truncate(3)", "takes a number"),
        ("truncate(name, 3)", "takes a number"),
        ("bucket(2, year(ts))", "expected"),
    ],
)
def test_invalid_partition_entry_is_refused(text: str, words: str) -> None:
    with pytest.raises(PartitionSyntaxError, match=words.replace("(", r"\(").replace(")", r"\)")):
        parse_partition(text)


@given(st.text(max_size=20))
def test_any_text_is_a_partition_entry_or_refused(text: str) -> None:
    try:
        field = parse_partition(text)
    except PartitionSyntaxError:
        return
    assert parse_partition(field.text) == field


@given(st.text(alphabet=string.printable + "é", min_size=1, max_size=8).filter(lambda name: name.strip()))
def test_every_name_can_be_written_in_backticks(name: str) -> None:
    assert parse_partition("`" + name.replace("`", "``") + "`").path == (name,)


FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "name", "type": "string"},
    {"name": "day", "type": "date"},
    {"name": "ts", "type": "timestamp"},
    {"name": "ts_day", "type": "string"},
    {"name": "price", "type": "double"},
    {"name": "raw", "type": "binary"},
    {"name": "tags", "type": "list<string>"},
    {"name": "address", "type": "struct<city: string, at: struct<lat: double, zone: int32>>"},
]


def defined(partition_by: list[str], **changes: Any) -> DatasetDefinition:
    new = {"name": "t", "schema": {"fields": FIELDS}, "partition_by": partition_by, **changes}
    return define_dataset(msgspec.convert(new, CreateDataset))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("nope", "no field 'nope' in the schema"),
        ("address.town", "'address' has no member 'town'"),
        ("address.at.height", "'address.at' has no member 'height'"),
        ("name.first", "'name' is string and has no members"),
        ("tags.element", "'tags' is list<string> and has no members"),
        ("address", "no exact equality"),
        ("price", "double has no exact equality"),
        ("bucket(4, price)", "double has no exact equality"),
        ("address.at.lat", "double has no exact equality"),
        ("year(name)", "year needs a date or a timestamp, not string"),
        ("hour(day)", "hour needs a timestamp, not date"),
        ("truncate(2, day)", "truncate needs a string or an integer, not date"),
        ("truncate(2, raw)", "truncate needs a string or an integer, not binary"),
        ("week(ts)", "no transform 'week'"),
    ],
)
def test_entry_that_does_not_match_the_schema_is_named(entry: str, words: str) -> None:
    with pytest.raises(InvalidDataset) as caught:
        defined(["name", entry])
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == "/partition_by/1"
    assert words in error["detail"]


@pytest.mark.parametrize(
    "entries", [["name", "name"], ["name", "identity(name)"], ["ts_day", "day(ts)"], ["day(ts)", "day(ts)"]]
)
def test_entries_with_the_same_folder_name_are_refused(entries: list[str]) -> None:
    with pytest.raises(InvalidDataset) as caught:
        defined(entries)
    assert [error["pointer"] for error in caught.value.facts["errors"]] == ["/partition_by/1"]


def test_more_than_eight_partition_entries_are_refused() -> None:
    entries = [f"bucket({number}, id)" for number in range(1, 10)]
    with pytest.raises(InvalidDataset, match="expected 8 at most, got 9") as caught:
        defined(entries)
    assert caught.value.facts["errors"][0]["detail"] == "expected 8 at most, got 9"


@pytest.mark.parametrize("mode", [None, "fixed", "dynamic", "postpone"])
def test_partition_of_a_keyed_dataset_derives_from_its_key(mode: str | None) -> None:
    with pytest.raises(InvalidDataset) as caught:
        defined(["id", "truncate(2, name)", "address.city"], record_key=["id"], bucket={"mode": mode})
    errors = {error["pointer"]: error["detail"] for error in caught.value.facts["errors"]}
    assert set(errors) == {"/partition_by/1", "/partition_by/2"}
    assert "add 'name' to the record key" in errors["/partition_by/1"]
    assert "add 'address.city' to the record key" in errors["/partition_by/2"]
    assert all("key_dynamic" in detail for detail in errors.values())


def test_key_dynamic_dataset_may_partition_by_any_field() -> None:
    definition = defined(
        ["truncate(2, name)", "address.city", "day"], record_key=["id"], bucket={"mode": "key_dynamic"}
    )
    assert definition.bucket.mode is BucketMode.KEY_DYNAMIC
    assert partition_sources(definition) == ("name", "address", "day")


@pytest.mark.parametrize(
    ("key", "partition_by", "required"),
    [
        (["id", "day"], ["day"], {"id", "day"}),
        (["id", "ts"], ["identity(id)", "day(ts)"], {"id", "ts"}),
        ([], ["day", "truncate(1, name)", "address.city"], set()),
    ],
)
def test_partition_sources_of_a_keyed_dataset_are_required(
    key: list[str], partition_by: list[str], required: set[str]
) -> None:
    definition = defined(partition_by, record_key=key)
    assert {field.name for field in definition.schema.fields if not field.nullable} == required


def test_plain_partition_field_of_a_keyed_dataset_is_required() -> None:
    definition = defined(["day", "year(ts)"], record_key=["id"], bucket={"mode": "key_dynamic"})
    assert [field.name for field in definition.schema.fields if not field.nullable] == ["id", "day"]


def test_partition_entries_have_one_canonical_spelling() -> None:
    assert defined(["identity(name)", "Day( ts )", "bucket(4,id)"]).partition_by == (
        "name",
        "day(ts)",
        "bucket(4, id)",
    )


@pytest.mark.parametrize(
    ("bucket", "paths"), [({"mode": "key_dynamic", "count": 1}, [""]), (None, ["name=a", "name=b"])]
)
def test_key_dynamic_rows_are_staged_without_a_partition(
    bucket: dict[str, Any] | None, paths: list[str]
) -> None:
    key = ["id"] if bucket else ["id", "name"]
    dataset = defined(["name"], record_key=key, bucket=bucket or {"count": 1})
    rows = pa.Table.from_pylist(
        [{"id": 1, "name": "b"}, {"id": 2, "name": "a"}], schema=dataset.schema.to_arrow()
    )
    slots = [slot for slot, _ in split_by_slot(with_ops(rows, Operation.UPSERT, dataset), dataset, 0)]
    assert sorted(slot.partition_path for slot in slots) == paths


@pytest.mark.parametrize("count", [1, 4])
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
@example([-1, 0, 1, 4, -4])
def test_mod_bucket_is_the_remainder_of_the_key(count: int, ids: list[int]) -> None:
    dataset = defined([], record_key=["id"], bucket={"count": count, "function": "mod"})
    rows = pa.Table.from_pylist([{"id": number} for number in ids], schema=dataset.schema.to_arrow())
    found = {
        number: slot.bucket
        for slot, batch in split_by_slot(with_ops(rows, Operation.UPSERT, dataset), dataset, 0)
        for number in batch.column("id").to_pylist()
    }
    assert found == {number: number % count for number in ids}
