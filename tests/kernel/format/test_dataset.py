"""Registrations: every broken rule is named, and the defaults are those the docs promise."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.infra.identifiers import new_id
from app.kernel.format.dataset import (
    Aggregate,
    BucketMode,
    ChangelogProducer,
    DatasetDefinition,
    Deletes,
    MergeMode,
    TableType,
)
from app.kernel.format.definition.dataset_definition import define_dataset, with_deletes
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateSchema,
)
from app.kernel.format.errors import InvalidDataset

FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "day", "type": "date"},
    {"name": "price", "type": "double"},
    {"name": "seen", "type": "timestamp"},
    {"name": "raw", "type": "binary"},
]


def registration(**changes: Any) -> CreateDataset:
    return msgspec.convert(
        {"name": "trips", "schema": {"fields": FIELDS}, "record_key": ["id"], **changes}, CreateDataset
    )


def field(name: str, type_name: str) -> dict[str, Any]:
    return {"schema": {"fields": [*FIELDS, {"name": name, "type": type_name}]}}


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"name": "no spaces"}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": new_id()}, "/name"),
        ({"schema": {"fields": []}, "record_key": []}, "/schema/fields"),
        (field("ID", "string"), "/schema/fields/5/name"),
        (field("", "string"), "/schema/fields/5/name"),
        (field("a\nb", "string"), "/schema/fields/5/name"),
        (field("_hw_row", "string"), "/schema/fields/5/name"),
        (field("x", "varchar"), "/schema/fields/5/type"),
        (field("x", "decimal(39, 0)"), "/schema/fields/5/type"),
        (field("x", "map<double, string>"), "/schema/fields/5/type"),
        ({"record_key": ["nope"]}, "/record_key/0"),
        ({"record_key": ["price"]}, "/record_key/0"),
        ({"record_key": ["id", "id"]}, "/record_key"),
        ({"ordering_field": "raw"}, "/ordering_field"),
        ({"event_time_field": "id"}, "/event_time_field"),
        ({"partition_by": ["day"]}, "/partition_by/0"),
        ({"merge_mode": "event_time"}, "/ordering_field"),
        ({"record_key": [], "ordering_field": "seen"}, "/ordering_field"),
        ({"record_key": [], "merge_mode": "commit_time"}, "/merge_mode"),
        ({"bucket": {"count": 0}}, "/bucket/count"),
        ({"bucket": {"mode": "unaware"}}, "/bucket/mode"),
        ({"record_key": [], "bucket": {"mode": "fixed"}}, "/bucket/mode"),
        ({"changelog": {"vocabulary": {"op": ""}}}, "/changelog/vocabulary/op"),
        ({"changelog": {"vocabulary": {"op": "ID"}}}, "/changelog/vocabulary/op"),
        ({"changelog": {"vocabulary": {"op": "Version"}}}, "/changelog/vocabulary/op"),
        ({"changelog": {"vocabulary": {"op": "x", "offset": "X"}}}, "/changelog/vocabulary/offset"),
        ({"changelog": {"vocabulary": {"op": "_hw_op"}}}, "/changelog/vocabulary/op"),
        ({"changelog": {"vocabulary": {"op": "_change_type"}}}, "/changelog/vocabulary/op"),
    ],
)
def test_broken_rule_is_named(changes: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidDataset) as caught:
        define_dataset(registration(**changes))
    assert pointer in [error["pointer"] for error in caught.value.facts["errors"]]


def test_all_broken_rules_are_reported_at_once() -> None:
    with pytest.raises(InvalidDataset) as caught:
        define_dataset(registration(name="?", record_key=["x"], bucket={"count": -1}))
    assert {error["pointer"] for error in caught.value.facts["errors"]} == {
        "/name",
        "/record_key/0",
        "/bucket/count",
    }


def test_text_of_the_error_has_the_first_broken_rules() -> None:
    faults = [(f"/fields/{number}", f"fault {number}") for number in range(5)]
    assert str(InvalidDataset.of(faults[:1])) == "/fields/0: fault 0"
    error = InvalidDataset.of(faults)
    assert str(error) == "/fields/0: fault 0; /fields/1: fault 1; /fields/2: fault 2; and 2 more"
    assert [each["pointer"] for each in error.facts["errors"]] == [pointer for pointer, _ in faults]


ORDERED = {"ordering_field": "seen"}


@pytest.mark.parametrize(
    ("changes", "keep_seconds"),
    [
        ({}, 0),
        ({"record_key": []}, 0),
        (ORDERED, 604_800),
        ({**ORDERED, "merge_mode": "event_time"}, 604_800),
        ({**ORDERED, "merge_mode": "partial"}, 604_800),
        ({**ORDERED, "merge_mode": "aggregate"}, 604_800),
        ({**ORDERED, "merge_mode": "commit_time"}, 0),
        ({"merge_mode": "partial"}, 0),
        ({**ORDERED, "deletes": {"keep_seconds": 0}}, 0),
        ({**ORDERED, "deletes": {"keep_seconds": 316_224_000}}, 316_224_000),
        ({"deletes": {"keep_seconds": 0}}, 0),
    ],
)
def test_tombstones_last_a_week_where_rows_are_compared_by_a_value(
    changes: dict[str, Any], keep_seconds: int
) -> None:
    assert define_dataset(registration(**changes)).keep_seconds == keep_seconds


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "the dataset has none"),
        ({"record_key": []}, "the dataset has none"),
        ({"merge_mode": "first"}, "the dataset has none"),
        ({"merge_mode": "partial"}, "the dataset has none"),
        ({**ORDERED, "merge_mode": "commit_time"}, "merge_mode commit_time compares no ordering values"),
    ],
)
def test_tombstones_need_values_to_compare(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidDataset) as refused:
        define_dataset(registration(**changes, deletes={"keep_seconds": 1}))
    [error] = refused.value.facts["errors"]
    assert error["pointer"] == "/deletes/keep_seconds"
    assert reason in error["detail"]
    with pytest.raises(InvalidDataset):
        with_deletes(define_dataset(registration(**changes)), Deletes(keep_seconds=1))


def test_definition_of_an_earlier_release_has_no_tombstones() -> None:
    stored = msgspec.to_builtins(define_dataset(registration(**ORDERED)))
    del stored["deletes"]
    assert msgspec.convert(stored, DatasetDefinition).keep_seconds == 0


def test_keyed_dataset_has_defaults() -> None:
    plain = define_dataset(registration())
    ordered = define_dataset(registration(ordering_field="seen"))
    assert (plain.merge_mode, ordered.merge_mode) == (MergeMode.COMMIT_TIME, MergeMode.EVENT_TIME)
    assert (plain.bucket.mode, plain.bucket.count, plain.bucket.target_rows) == (
        BucketMode.FIXED,
        None,
        2_000_000,
    )
    assert (plain.table_type, define_dataset(registration(record_key=[])).table_type) == (
        TableType.MERGE_ON_READ,
        TableType.COPY_ON_WRITE,
    )
    assert plain.keyed


def test_dataset_without_a_key_is_append_only() -> None:
    definition = define_dataset(registration(record_key=[]))
    assert (definition.bucket.mode, definition.bucket.count, definition.keyed) == (
        BucketMode.UNAWARE,
        1,
        False,
    )


def test_key_and_partition_fields_become_required() -> None:
    definition = define_dataset(registration(record_key=["id", "day"], partition_by=["day"]))
    assert [entry.nullable for entry in definition.schema.fields] == [False, False, True, True, True]
    assert [entry.id for entry in definition.schema.fields] == [1, 2, 3, 4, 5]


def test_overflowing_sums_require_a_table_that_finds_rows() -> None:
    fields = [
        CreateField(name="k", type="string"),
        CreateField(name="n", type="int32"),
        CreateField(name="c", type="int64"),
    ]
    summed: dict[str, Any] = {
        "name": "t",
        "schema": CreateSchema(fields=fields),
        "record_key": ["k"],
        "merge_mode": MergeMode.AGGREGATE,
        "aggregates": {"n": Aggregate.SUM, "c": Aggregate.COUNT},
    }
    logs = {
        "table_type": TableType.MERGE_ON_READ,
        "changelog": CreateChangelog(producer=ChangelogProducer.DEFERRED),
    }
    for later in (logs, {"bucket": CreateBucket(mode=BucketMode.POSTPONE)}):
        with pytest.raises(InvalidDataset) as refusal:
            define_dataset(CreateDataset(**summed, **later))
        assert [error["pointer"] for error in refusal.value.facts["errors"]] == ["/aggregates/n"]
    assert define_dataset(CreateDataset(**summed, table_type=TableType.MERGE_ON_READ)).looks_up
