"""Which operations a dataset takes, and which definitions of merging are refused."""

from __future__ import annotations

from typing import Any

import pytest

from app.kernel.format.dataset import Aggregate, BucketMode, MergeMode
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateField,
    CreateSchema,
    CreateSequenceGroup,
)
from app.kernel.format.errors import InvalidDataset, InvalidRequest
from app.kernel.format.operation import Operation, check_operation
from tests.kernel.commit.merging import dataset

NEED_A_KEY = (Operation.UPSERT, Operation.DELETE)


@pytest.mark.parametrize("mode", MergeMode)
@pytest.mark.parametrize("operation", Operation)
def test_keyed_dataset_accepts_every_operation_its_merge_mode_supports(
    mode: MergeMode, operation: Operation
) -> None:
    definition = dataset(ordered=mode is MergeMode.EVENT_TIME, merge_mode=mode)
    if operation is Operation.CHANGELOG and mode in (MergeMode.FIRST, MergeMode.AGGREGATE):
        with pytest.raises(InvalidRequest, match=mode.value) as caught:
            check_operation(operation, definition)
        assert caught.value.facts["errors"][0]["pointer"] == "/operation"
        check_operation(operation, definition, by_arrival=True)
    else:
        check_operation(operation, definition)


@pytest.mark.parametrize("operation", Operation)
def test_keyless_dataset_accepts_operations_without_a_key(operation: Operation) -> None:
    definition = dataset(key=[])
    if operation not in NEED_A_KEY:
        check_operation(operation, definition)
        return
    with pytest.raises(InvalidRequest, match="append-only"):
        check_operation(operation, definition)
    if operation is Operation.DELETE:
        check_operation(operation, definition, by_filter=True)


PLACED = {"partition_by": ["n"], "bucket": CreateBucket(mode=BucketMode.KEY_DYNAMIC)}
REQUIRED = CreateSchema(
    fields=[CreateField(name="k", type="string"), CreateField(name="v", type="int64", nullable=False)]
)


@pytest.mark.parametrize(
    ("parts", "pointer"),
    [
        ({"merge_mode": MergeMode.FIRST, "ordering_field": "ts"}, "/ordering_field"),
        ({"aggregates": {"big": Aggregate.SUM}}, "/aggregates"),
        ({"merge_mode": MergeMode.AGGREGATE, "aggregates": {"name": Aggregate.SUM}}, "/aggregates/name"),
        ({"merge_mode": MergeMode.AGGREGATE, "aggregates": {"k": Aggregate.LAST}}, "/aggregates/k"),
        ({"merge_mode": MergeMode.AGGREGATE, "aggregates": {"n": Aggregate.SUM}, **PLACED}, "/aggregates/n"),
        ({"merge_mode": MergeMode.AGGREGATE, "ordering_field": "n", **PLACED}, "/ordering_field"),
        (
            {
                "merge_mode": MergeMode.PARTIAL,
                "sequence_groups": [CreateSequenceGroup(ordering_field="g", fields=["n"])],
                **PLACED,
            },
            "/sequence_groups/0/fields",
        ),
        ({"sequence_groups": [CreateSequenceGroup(ordering_field="g", fields=["name"])]}, "/sequence_groups"),
        ({"merge_mode": MergeMode.PARTIAL, "schema": REQUIRED}, "/schema/fields/1/nullable"),
        ({"delete_marker": "name"}, "/delete_marker"),
    ],
)
def test_dataset_that_cannot_be_merged_is_refused(parts: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidDataset) as caught:
        dataset(**parts)
    assert pointer in [error["pointer"] for error in caught.value.facts["errors"]]


def test_ordering_field_of_a_partial_merge_may_be_required() -> None:
    definition = dataset(schema=REQUIRED, ordering_field="v", merge_mode=MergeMode.PARTIAL)
    assert definition.ordering_field == "v"
