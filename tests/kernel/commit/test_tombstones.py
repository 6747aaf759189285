"""Which writes leave tombstones, and which may be compared with some."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.kernel.commit.write_effect import compares_with_tombstones, keep_seconds
from app.kernel.commit.write_options import ChangeOrder, WriteOptions
from app.kernel.format.dataset import DatasetDefinition, Deletes, MergeMode
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import FileKind
from app.kernel.format.operation import Operation
from tests.support.lakehouse import data_file

FIELDS = [CreateField(name="id", type="int64"), CreateField(name="at", type="int64")]
FIELDS.append(CreateField(name="gone", type="boolean"))


def dataset(**settings: Any) -> DatasetDefinition:
    new = CreateDataset(name="t", schema=CreateSchema(fields=FIELDS), record_key=["id"], **settings)
    return define_dataset(new)


ORDERED = dataset(ordering_field="at", deletes=Deletes(keep_seconds=9))
MARKED = dataset(ordering_field="at", delete_marker="gone", deletes=Deletes(keep_seconds=9))


@pytest.mark.parametrize("operation", list(Operation))
def test_deletes_that_name_keys_leave_tombstones(operation: Operation) -> None:
    leaving = {Operation.DELETE}
    assert keep_seconds(operation, WriteOptions(), ORDERED) == (9 if operation in leaving else 0)
    leaving.add(Operation.UPSERT)
    assert keep_seconds(operation, WriteOptions(), MARKED) == (9 if operation in leaving else 0)


def test_changes_leave_tombstones_if_they_are_compared_by_value() -> None:
    for order, seconds in ((ChangeOrder.ORDERING_FIELD, 9), (ChangeOrder.ARRIVAL, 0)):
        assert keep_seconds(Operation.CHANGELOG, WriteOptions(order=order), ORDERED) == seconds


def test_delete_leaves_none_by_filter_by_its_option_and_where_the_dataset_has_none() -> None:
    for options in (WriteOptions(where="id = 1"), WriteOptions(tombstone=False)):
        assert keep_seconds(Operation.DELETE, options, ORDERED) == 0
    assert keep_seconds(Operation.DELETE, WriteOptions(), dataset()) == 0


def test_tombstones_that_exist_are_compared_also_if_deletes_leave_none_any_more() -> None:
    base = data_file()
    files = {kind: msgspec.structs.replace(base, kind=kind) for kind in FileKind}
    ended = msgspec.structs.replace(ORDERED, deletes=Deletes(keep_seconds=0))
    assert compares_with_tombstones(ORDERED, [])
    assert not compares_with_tombstones(ended, [base])
    for kind in (FileKind.LOG, FileKind.POSTPONED, FileKind.TOMBSTONE):
        assert compares_with_tombstones(ended, [base, files[kind]])
        assert not compares_with_tombstones(dataset(), [base, files[kind]])
        by_commit = dataset(ordering_field="at", merge_mode=MergeMode.COMMIT_TIME)
        assert not compares_with_tombstones(by_commit, [base, files[kind]])
