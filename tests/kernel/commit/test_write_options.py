"""Which options of a write go together: every pair that does not is refused, with where and why."""

import pytest

from app.kernel.commit.write_options import (
    ChangeOrder,
    OnError,
    Overwrite,
    OverwriteScope,
    SaveMode,
    WriteOptions,
)
from app.kernel.commit.write_rules import applies_by_arrival, brings_rows, check_options, resolve_mode
from app.kernel.format.dataset import BucketMode, ChangelogProducer, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateSchema,
)
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.operation import Operation

FIELDS = [
    CreateField(name="day", type="date"),
    CreateField(name="id", type="int64"),
    CreateField(name="tags", type="list<string>"),
]


def dataset(**settings):
    return define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=FIELDS), **settings))


KEYED = dataset(record_key=["day", "id"], partition_by=["day"])
PLAIN = dataset(record_key=["id"])
APPENDS = dataset(partition_by=["day"])
DEFERS = dataset(
    record_key=["id"],
    table_type=TableType.MERGE_ON_READ,
    changelog=CreateChangelog(producer=ChangelogProducer.DEFERRED),
)
POSTPONES = dataset(record_key=["id"], bucket=CreateBucket(mode=BucketMode.POSTPONE))
BY_FILTER = Overwrite(scope=OverwriteScope.FILTER, where="id = 1")
BY_PARTITION = Overwrite(scope=OverwriteScope.PARTITIONS)

REFUSED = [
    (KEYED, "upsert", {"drop_duplicates": True}, "/drop_duplicates"),
    (KEYED, "overwrite", {"drop_duplicates": True}, "/drop_duplicates"),
    (APPENDS, "insert", {"drop_duplicates": True}, "/drop_duplicates"),
    (KEYED, "insert", {"combine": False}, "/combine"),
    (KEYED, "bulk_insert", {"combine": False}, "/combine"),
    (KEYED, "upsert", {"combine": False}, "/combine"),
    *(
        (KEYED, each, {"order": ChangeOrder.ARRIVAL}, "/order")
        for each in ("upsert", "insert", "delete", "snapshot")
    ),
    (KEYED, "upsert", {"order": ChangeOrder.ORDERING_FIELD}, "/order"),
    (APPENDS, "insert", {"order": ChangeOrder.ARRIVAL}, "/order"),
    (APPENDS, "overwrite", {"combine": False}, "/combine"),
    (APPENDS, "snapshot", {"combine": False}, "/combine"),
    (APPENDS, "delete", {"where": "id = 1", "combine": False}, "/combine"),
    *(
        (KEYED, each, {"sort_by": ("id",)}, "/sort_by")
        for each in ("insert", "upsert", "overwrite", "snapshot")
    ),
    (APPENDS, "insert", {"sort_by": ("id",)}, "/sort_by"),
    (DEFERS, "bulk_insert", {"sort_by": ("id",)}, "/sort_by"),
    (KEYED, "bulk_insert", {"sort_by": ("id", "none")}, "/sort_by/1"),
    (KEYED, "bulk_insert", {"sort_by": ("id", "day", "id")}, "/sort_by/2"),
    (APPENDS, "bulk_insert", {"sort_by": ("tags",)}, "/sort_by/0"),
    *((KEYED, name, {"tombstone": False}, "/tombstone") for name in ("upsert", "snapshot", "changelog")),
    (KEYED, "delete", {"where": "id = 1", "tombstone": False}, "/tombstone"),
    (KEYED, "delete_partition", {"partitions": ("*",), "tombstone": False}, "/tombstone"),
    (POSTPONES, "insert", {}, "/operation"),
    (POSTPONES, "bulk_insert", {"drop_duplicates": True}, "/operation"),
    (KEYED, "delete", {"mode": SaveMode.OVERWRITE}, "/mode"),
    (KEYED, "delete", {"mode": SaveMode.IGNORE}, "/mode"),
    (KEYED, "snapshot", {"mode": SaveMode.OVERWRITE}, "/mode"),
    (KEYED, "overwrite", {"mode": SaveMode.ERROR_IF_EXISTS}, "/mode"),
    (KEYED, "changelog", {"mode": SaveMode.IGNORE}, "/mode"),
    (KEYED, "upsert", {"overwrite": Overwrite()}, "/overwrite"),
    (PLAIN, "overwrite", {"overwrite": BY_PARTITION}, "/overwrite/scope"),
    (KEYED, "overwrite", {"overwrite": Overwrite(scope=OverwriteScope.FILTER)}, "/overwrite/where"),
    (KEYED, "overwrite", {"overwrite": Overwrite(where="id = 1")}, "/overwrite/where"),
    (KEYED, "insert", {"where": "id = 1"}, "/where"),
    (KEYED, "overwrite", {"where": "id = 1"}, "/where"),
    (KEYED, "delete", {"partitions": ("*",)}, "/partitions"),
    (KEYED, "delete_partition", {}, "/partitions"),
    (KEYED, "delete_partition", {"partitions": ("*",) * 1001}, "/partitions"),
    (KEYED, "delete_partition", {"partitions": ("*", "")}, "/partitions/1"),
    (PLAIN, "delete_partition", {"partitions": ("*",)}, "/operation"),
    (KEYED, "delete", {"where": "id = 1", "on_error": OnError.QUARANTINE}, "/on_error"),
    (KEYED, "delete_partition", {"partitions": ("*",), "on_error": OnError.QUARANTINE}, "/on_error"),
    (KEYED, "delete", {"merge_schema": True}, "/merge_schema"),
    (KEYED, "delete", {"where": "id = 1", "merge_schema": True}, "/merge_schema"),
    (KEYED, "delete_partition", {"partitions": ("*",), "explicit_cast": True}, "/explicit_cast"),
    (KEYED, "upsert", {"explicit_cast": True}, "/explicit_cast"),
    (KEYED, "upsert", {"expected_version": -1}, "/expected_version"),
    (KEYED, "upsert", {"expected_version": 2**63}, "/expected_version"),
    (KEYED, "upsert", {"batch_id": 1}, "/writer_id"),
    (KEYED, "upsert", {"writer_id": "w"}, "/batch_id"),
    (KEYED, "upsert", {"writer_id": "", "batch_id": 1}, "/writer_id"),
    (KEYED, "upsert", {"writer_id": "a\0b", "batch_id": 1}, "/writer_id"),
    (KEYED, "upsert", {"writer_id": "w" * 256, "batch_id": 1}, "/writer_id"),
    (KEYED, "upsert", {"writer_id": "w", "batch_id": -1}, "/batch_id"),
    (APPENDS, "upsert", {}, "/operation"),
    (APPENDS, "delete", {}, "/operation"),
]
TAKEN = [
    *((KEYED, operation, {}) for operation in ("insert", "upsert", "bulk_insert", "delete", "overwrite")),
    *((KEYED, operation, {}) for operation in ("snapshot", "changelog")),
    *((APPENDS, operation, {}) for operation in ("insert", "bulk_insert", "overwrite", "snapshot")),
    *((KEYED, "changelog", {"order": order}) for order in ChangeOrder),
    *((APPENDS, "changelog", {"order": order}) for order in ChangeOrder),
    (APPENDS, "insert", {"combine": False}),
    (APPENDS, "bulk_insert", {"combine": False, "mode": SaveMode.IGNORE}),
    (KEYED, "bulk_insert", {"sort_by": ("id", "day")}),
    (APPENDS, "bulk_insert", {"sort_by": ("id",)}),
    (KEYED, "delete", {"tombstone": False}),
    (APPENDS, "delete", {"where": "id = 1"}),
    (APPENDS, "delete_partition", {"partitions": ("day=2026-*",)}),
    (KEYED, "overwrite", {"overwrite": BY_PARTITION}),
    (KEYED, "overwrite", {"overwrite": BY_FILTER, "merge_schema": True, "explicit_cast": True}),
    (KEYED, "bulk_insert", {"drop_duplicates": True, "on_error": OnError.QUARANTINE}),
    (KEYED, "insert", {"mode": SaveMode.IGNORE}),
    (KEYED, "upsert", {"mode": SaveMode.ERROR_IF_EXISTS, "expected_version": 0}),
    (KEYED, "upsert", {"writer_id": "sensor 7", "batch_id": 0}),
]


@pytest.mark.parametrize(("definition", "operation", "options", "pointer"), REFUSED)
def test_conflicting_options_are_refused_with_their_pointers(definition, operation, options, pointer):
    with pytest.raises(InvalidRequest) as refused:
        check_options(Operation(operation), WriteOptions(**options), definition)
    assert [error["pointer"] for error in refused.value.facts["errors"]] == [pointer]
    assert refused.value.facts["errors"][0]["detail"]


@pytest.mark.parametrize(("definition", "operation", "options"), TAKEN)
def test_compatible_options_are_accepted(definition, operation, options):
    check_options(Operation(operation), WriteOptions(**options), definition)


@pytest.mark.parametrize(
    ("operation", "order", "by_arrival"),
    [
        ("changelog", None, True),
        ("changelog", ChangeOrder.ARRIVAL, True),
        ("changelog", ChangeOrder.ORDERING_FIELD, False),
        ("upsert", None, False),
        ("delete", None, False),
    ],
)
def test_changes_are_applied_by_arrival_by_default(operation, order, by_arrival):
    assert applies_by_arrival(Operation(operation), WriteOptions(order=order)) is by_arrival


def test_every_conflicting_option_is_reported():
    options = WriteOptions(mode=SaveMode.IGNORE, partitions=("*",), drop_duplicates=True, batch_id=1)
    with pytest.raises(InvalidRequest) as refused:
        check_options(Operation.DELETE, options, KEYED)
    pointers = {error["pointer"] for error in refused.value.facts["errors"]}
    assert pointers == {"/mode", "/partitions", "/drop_duplicates", "/writer_id"}


@pytest.mark.parametrize("operation", ["insert", "upsert", "bulk_insert", "overwrite"])
def test_overwrite_mode_resolves_to_the_overwrite_operation(operation):
    options = WriteOptions(mode=SaveMode.OVERWRITE, overwrite=BY_PARTITION, expected_version=3)
    resolved = resolve_mode(Operation(operation), options)
    assert resolved == (Operation.OVERWRITE, WriteOptions(overwrite=BY_PARTITION, expected_version=3))
    check_options(*resolved, KEYED)


@pytest.mark.parametrize(
    ("operation", "options", "brings"),
    [
        ("delete", {}, True),
        ("delete", {"where": "id = 1"}, False),
        ("delete_partition", {"partitions": ("*",)}, False),
        ("overwrite", {"overwrite": BY_FILTER}, True),
    ],
)
def test_operation_and_options_decide_whether_a_write_has_rows(operation, options, brings):
    assert brings_rows(Operation(operation), WriteOptions(**options)) is brings
