"""The merge of new rows has the result of the general merge, which also runs where several rows may have one key."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.commit.merge import merge as general
from app.kernel.commit.merge import new_rows
from app.kernel.commit.merge.merge import merge
from app.kernel.commit.merge.new_rows import add_new_rows
from app.kernel.commit.merge.outcome import MergeResult
from app.kernel.format.dataset import DatasetDefinition, MergeMode
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from app.kernel.format.rows.meta_columns import META_FIELDS, OFFSET_COLUMN
from app.kernel.format.rows.record_key import encode_keys
from tests.kernel.commit.merging import (
    GROUPED,
    ROWS,
    current_rows,
    dataset,
    datasets,
    incoming_rows,
    intents,
    row,
    writes,
)
from tests.kernel.commit.reference import Row, Write


def added(of: DatasetDefinition, group: Sequence[Write], live: Sequence[Row] = ()) -> MergeResult | None:
    return add_new_rows(of, current_rows(of, live), incoming_rows(of, group), intents(of, group))


def merged_generally(of: DatasetDefinition, group: Sequence[Write]) -> MergeResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(general, "add_new_rows", lambda *_: None)
        return merge(of, current_rows(of, []), incoming_rows(of, group), intents(of, group))


def upsert(*rows: Row) -> Write:
    return Write(
        operation=Operation.UPSERT, rows=[(Op.APPEND, each) for each in rows], drop=False, quarantine=False
    )


def distinct(of: DatasetDefinition, group: Sequence[Write]) -> list[Write]:
    """The writes with the first row of each key only."""
    seen: set[tuple[object, ...]] = set()
    found = []
    for write in group:
        rows = []
        for op, each in write.rows:
            key = tuple(each[name] for name in of.record_key)
            if key not in seen:
                seen.add(key)
                rows.append((op, each))
        found.append(
            Write(operation=write.operation, rows=rows, drop=write.drop, quarantine=write.quarantine)
        )
    return found


@given(datasets(), st.lists(writes(GROUPED), min_size=1, max_size=3), st.booleans())
def test_new_rows_are_merged_as_all_rows_are(of: DatasetDefinition, group: list[Write], once: bool) -> None:
    group = distinct(of, group) if once else group
    found = added(of, group)
    if found is None:
        return
    expected = merged_generally(of, group)
    assert found.rows.equals(expected.rows)
    assert found.changes.equals(expected.changes)
    assert found.rows.schema == expected.rows.schema
    assert found.changes.schema == expected.changes.schema
    assert found.counts == expected.counts
    assert found.stays.tolist() == expected.stays.tolist()
    assert found.replaces.tolist() == expected.replaces.tolist()
    assert found.quarantined_rows.equals(expected.quarantined_rows)
    assert found.appends_only
    assert expected.appends_only
    turned = found.in_order(np.arange(found.rows.num_rows)[::-1])
    for result in (found, turned):
        assert result.key_hashes is not None
        assert result.key_hashes.tolist() == hash_keys(encode_keys(result.rows, of.record_key)).tolist()


@pytest.mark.parametrize("mode", [MergeMode.COMMIT_TIME, MergeMode.EVENT_TIME, MergeMode.FIRST])
def test_rows_that_are_all_new_are_recognised(mode: MergeMode) -> None:
    of = dataset(ordered=mode is MergeMode.EVENT_TIME, merge_mode=mode)
    assert added(of, [upsert(row("a"), row("b", ts=None)), upsert(row("c"))]) is not None


@pytest.mark.parametrize("mode", [MergeMode.PARTIAL, MergeMode.AGGREGATE])
def test_rows_that_are_folded_are_left_to_the_general_merge(mode: MergeMode) -> None:
    assert added(dataset(merge_mode=mode), [upsert(row("a"))]) is None


def test_rows_that_may_share_a_key_are_left_to_the_general_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    of = dataset()
    assert added(of, [upsert(row("a"), row("b"), row("a"))]) is None
    assert added(of, [upsert(row("a")), upsert(row("a"))]) is None
    assert added(of, [upsert(row("a"))], live=[row("b")]) is None
    delete = Write(operation=Operation.DELETE, rows=[(Op.RETRACT, row("b"))], drop=False, quarantine=False)
    assert added(of, [upsert(row("a")), delete]) is None
    # Different keys with one hash are no reason to fail.
    monkeypatch.setattr(new_rows, "hash_keys", lambda keys: np.zeros(len(keys), dtype=np.uint64))
    assert added(of, [upsert(row("a"), row("b"))]) is None


def test_rows_of_logs_keep_where_they_come_from() -> None:
    of = dataset()
    incoming = incoming_rows(of, [upsert(row("a"))])
    for field, number in zip(META_FIELDS, (7, 70), strict=True):
        incoming = incoming.append_column(field, pa.array([number], field.type))
    result = merge(of, current_rows(of, []), incoming, intents(of, [upsert(row("a"))]))
    assert result.rows.select([field.name for field in META_FIELDS]).to_pylist() == [
        {META_FIELDS[0].name: 7, META_FIELDS[1].name: 70}
    ]


@given(st.lists(ROWS, min_size=1, max_size=8, unique_by=lambda each: each["k"]), st.randoms())
def test_appends_in_another_order_are_the_same_appends(rows: list[Row], random: Random) -> None:
    of = dataset()
    result = added(of, [upsert(*rows)])
    assert result is not None
    numbers = list(range(len(rows)))
    random.shuffle(numbers)
    moved = result.in_order(np.array(numbers))
    keys = encode_keys(result.rows, of.record_key).to_pylist()
    assert encode_keys(moved.rows, of.record_key).to_pylist() == [keys[at] for at in numbers]
    assert encode_keys(moved.changes, of.record_key).to_pylist() == [keys[at] for at in numbers]
    assert moved.rows.column(OFFSET_COLUMN).to_pylist() == [-1 - at for at in range(len(rows))]
    assert moved.rows.schema == result.rows.schema
    assert moved.changes.schema == result.changes.schema
