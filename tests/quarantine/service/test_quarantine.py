"""How records in quarantine are redriven, and how they are named."""

from __future__ import annotations

import pytest

from app.commit.write_options import OnError, Overwrite, SaveMode, WriteOptions, check_options
from app.format.definition.dataset_definition import define_dataset
from app.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.format.operation import Operation
from app.jobs.values import WriteRequest
from app.quarantine.service import ranges_of, redriven_write
from app.quarantine.values import RecordRange

SCHEMA = CreateSchema(fields=[CreateField(name="id", type="int64")])
KEYED = define_dataset(CreateDataset(name="keyed", schema=SCHEMA, record_key=["id"]))
UNKEYED = define_dataset(CreateDataset(name="unkeyed", schema=SCHEMA))
ASIDE = OnError.QUARANTINE


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
def test_records_are_driven_again_as_what_they_came_as_unless_that_would_replace_others(operation, again):
    original = WriteRequest(operation=operation, options=WriteOptions(on_error=ASIDE))
    found, options = redriven_write(original, KEYED)
    assert found is again
    assert options == WriteOptions(on_error=ASIDE)
    check_options(found, options, KEYED)


@pytest.mark.parametrize("operation", [Operation.OVERWRITE, Operation.SNAPSHOT, Operation.INSERT])
def test_without_a_key_they_are_inserted(operation):
    options = WriteOptions(on_error=ASIDE)
    found, options = redriven_write(WriteRequest(operation=operation, options=options), UNKEYED)
    assert found is Operation.INSERT
    check_options(found, options, UNKEYED)


def test_what_tied_the_write_to_its_moment_is_left_out():
    given = WriteOptions(
        mode=SaveMode.ERROR_IF_EXISTS,
        overwrite=Overwrite(),
        on_error=ASIDE,
        drop_duplicates=True,
        merge_schema=True,
        explicit_cast=True,
        expected_version=7,
        writer_id="w",
        batch_id=3,
    )
    _, options = redriven_write(WriteRequest(operation=Operation.INSERT, options=given), KEYED)
    assert options == WriteOptions(
        on_error=ASIDE, drop_duplicates=True, merge_schema=True, explicit_cast=True
    )
    _, options = redriven_write(WriteRequest(operation=Operation.OVERWRITE, options=given), KEYED)
    assert not options.drop_duplicates


def test_records_are_named_by_few_ranges():
    assert ranges_of("p", [5, 1, 2, 4, 9]) == [
        RecordRange(path="p", first=1, count=2),
        RecordRange(path="p", first=4, count=2),
        RecordRange(path="p", first=9, count=1),
    ]
    assert ranges_of("p", []) == []
