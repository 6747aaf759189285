"""How records in quarantine are redriven, and how they are named."""

from __future__ import annotations

import pytest

from app.core.jobs.kinds.write import WriteRequest
from app.features.quarantine.service import ranges_of, redriven_write
from app.features.quarantine.values import RecordRange
from app.kernel.commit.write_options import ChangeOrder, OnError, Overwrite, SaveMode, WriteOptions
from app.kernel.commit.write_rules import check_options
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.operation import Operation

SCHEMA = CreateSchema(fields=[CreateField(name="id", type="int64")])
KEYED = define_dataset(CreateDataset(name="keyed", schema=SCHEMA, record_key=["id"]))
UNKEYED = define_dataset(CreateDataset(name="unkeyed", schema=SCHEMA))
QUARANTINE = OnError.QUARANTINE


@pytest.mark.parametrize(
    ("operation", "again"),
    [
        (Operation.UPSERT, Operation.UPSERT),
        (Operation.INSERT, Operation.INSERT),
        (Operation.BULK_INSERT, Operation.BULK_INSERT),
        (Operation.DELETE, Operation.DELETE),
        (Operation.CHANGELOG, Operation.CHANGELOG),
        (Operation.OVERWRITE, Operation.UPSERT),
        (Operation.SNAPSHOT, Operation.UPSERT),
    ],
)
def test_redrive_repeats_the_operation_unless_it_replaces_rows(operation, again):
    original = WriteRequest(operation=operation, options=WriteOptions(on_error=QUARANTINE))
    found, options = redriven_write(original, KEYED)
    assert found is again
    assert options == WriteOptions(on_error=QUARANTINE)
    check_options(found, options, KEYED)


def test_redrive_of_changes_has_their_order():
    options = WriteOptions(on_error=QUARANTINE, order=ChangeOrder.ORDERING_FIELD)
    _, found = redriven_write(WriteRequest(operation=Operation.CHANGELOG, options=options), KEYED)
    assert found.order is ChangeOrder.ORDERING_FIELD


@pytest.mark.parametrize("operation", [Operation.OVERWRITE, Operation.SNAPSHOT, Operation.INSERT])
def test_keyless_redrive_inserts(operation):
    options = WriteOptions(on_error=QUARANTINE)
    found, options = redriven_write(WriteRequest(operation=operation, options=options), UNKEYED)
    assert found is Operation.INSERT
    check_options(found, options, UNKEYED)


def test_redrive_omits_options_bound_to_the_original_write():
    original_options = WriteOptions(
        mode=SaveMode.ERROR_IF_EXISTS,
        overwrite=Overwrite(),
        on_error=QUARANTINE,
        drop_duplicates=True,
        merge_schema=True,
        explicit_cast=True,
        expected_version=7,
        writer_id="w",
        batch_id=3,
    )
    _, options = redriven_write(WriteRequest(operation=Operation.INSERT, options=original_options), KEYED)
    assert options == WriteOptions(
        on_error=QUARANTINE, drop_duplicates=True, merge_schema=True, explicit_cast=True
    )
    _, options = redriven_write(WriteRequest(operation=Operation.OVERWRITE, options=original_options), KEYED)
    assert not options.drop_duplicates


def test_record_numbers_are_grouped_into_ranges():
    assert ranges_of("p", [5, 1, 2, 4, 9]) == [
        RecordRange(path="p", first=1, count=2),
        RecordRange(path="p", first=4, count=2),
        RecordRange(path="p", first=9, count=1),
    ]
    assert ranges_of("p", []) == []
