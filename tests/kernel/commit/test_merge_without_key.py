"""Rows without a key where a write takes the place of what was there: the difference of two heaps of rows."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.commit.merge.merge import merge
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN, META_NAMES, OFFSET_COLUMN
from app.kernel.format.rows.staging import ROW_COLUMN
from tests.kernel.commit.merging import ROWS, current_rows, dataset, feed, incoming_rows, intents, row
from tests.kernel.commit.reference import Heap, Row, Write, exact
from tests.support.examples import a_third_of
from tests.support.shares import share

HEAP = dataset(key=[])
# Few different rows, so that many are there more than once.
FEW = st.lists(
    st.one_of(
        st.sampled_from([None, [], [None], [{"a": None}]]).map(lambda items: row("a", items=items)),
        st.sampled_from([0.0, -0.0]).map(lambda ratio: row("a", ratio=ratio)),
        ROWS,
    ),
    max_size=8,
)


@share(2)
@settings(max_examples=a_third_of(300), deadline=None)
@given(
    before=FEW,
    rows=FEW,
    operation=st.sampled_from([Operation.SNAPSHOT, Operation.OVERWRITE, Operation.DELETE]),
)
def test_keyless_overwrite_keeps_common_rows_and_emits_the_difference(
    before: list[Row], rows: list[Row], operation: Operation
) -> None:
    rows = [] if operation is Operation.DELETE else rows
    writes = [Write(operation=operation, rows=[(Op.APPEND, values) for values in rows])]
    current = current_rows(HEAP, before)
    result = merge(HEAP, current, incoming_rows(HEAP, writes), intents(HEAP, writes), retract_rest=True)

    expected = Heap(rows=rows).changes_from(before)
    differences = feed(result)
    assert sorted((op, exact(values)) for op, values in differences) == expected
    # What is gone goes first.
    assert [op for op, _ in differences] == sorted((op for op, _ in differences), reverse=True)
    added = sum(op == Op.APPEND for op, _ in expected)
    removed = len(expected) - added
    assert result.counts == {0: RowCounts(inserted=added, deleted=removed, unchanged=len(rows) - added)}
    assert int((~result.stays).sum()) == removed
    stored = result.rows.drop_columns(list(META_NAMES)).to_pylist()
    kept = [values for values, stays in zip(before, result.stays, strict=True) if stays]
    assert sorted(map(exact, kept + stored)) == sorted(map(exact, rows))
    assert result.replaces.tolist() == [-1] * added

    gone = [values for values, stays in zip(current.to_pylist(), result.stays, strict=True) if not stays]
    changes = result.changes.to_pylist()
    corrected = [change[CORRECTS_COLUMN] for change in changes if change[OP_COLUMN] == Op.RETRACT]
    assert sorted(corrected) == sorted(values[OFFSET_COLUMN] for values in gone)
    for values in result.rows.to_pylist():
        change = changes[-1 - values[OFFSET_COLUMN]]
        assert change[OP_COLUMN] == Op.APPEND
        assert change["k"] == values["k"]


def test_keyless_rows_merge_only_by_overwrite_or_delete() -> None:
    writes = [Write(operation=Operation.INSERT, rows=[(Op.APPEND, row("a"))])]
    with pytest.raises(ValueError, match="without a key"):
        merge(HEAP, current_rows(HEAP, []), incoming_rows(HEAP, writes), intents(HEAP, writes))


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(list(Op)),
        st.sampled_from([row("a"), row("a", ratio=0.0), row("a", ratio=-0.0), row("b", items=[{"a": None}])]),
    ),
    max_size=8,
)


@settings(max_examples=a_third_of(150), deadline=None)
@given(before=FEW, rows=CHANGES, quarantine=st.booleans())
def test_changes_without_a_key_are_counted_row_by_row(
    before: list[Row], rows: list[tuple[int, Row]], quarantine: bool
) -> None:
    """The model applies one change after another; equal rows that are added and removed cancel each other."""
    before = [*before, row("a"), row("a")]
    table = [exact(values) for values in before]
    absent = []
    for at, (op, values) in enumerate(rows):
        if op in (Op.APPEND, Op.CORRECT_TO):
            table.append(exact(values))
        elif exact(values) in table:
            table.remove(exact(values))
        else:
            absent.append(at)
    writes = [Write(operation=Operation.CHANGELOG, rows=rows, quarantine=quarantine)]
    result = merge(HEAP, current_rows(HEAP, before), incoming_rows(HEAP, writes), intents(HEAP, writes))

    if absent and not quarantine:
        [conflict] = result.conflicts
        assert (conflict.absent, conflict.count, conflict.job) == (tuple(absent), len(absent), 0)
        return
    assert result.conflicts == ()
    assert result.quarantined_rows.column(ROW_COLUMN).to_pylist() == absent
    kept = [exact(values) for values, stays in zip(before, result.stays, strict=True) if stays]
    stored = [exact(values) for values in result.rows.drop_columns(list(META_NAMES)).to_pylist()]
    assert sorted(kept + stored) == sorted(table)
    added = list((Counter(table) - Counter(map(exact, before))).elements())
    removed = list((Counter(map(exact, before)) - Counter(table)).elements())
    emitted = [(op, exact(values)) for op, values in feed(result)]
    assert sorted(emitted) == sorted(
        [(Op.APPEND, each) for each in added] + [(Op.RETRACT, each) for each in removed]
    )
    counts = RowCounts(
        inserted=len(added),
        deleted=len(removed),
        unchanged=len(rows) - len(absent) - len(added) - len(removed),
        quarantined=len(absent),
    )
    assert result.counts == {0: counts}
    offsets = {100 + at: exact(values) for at, values in enumerate(before)}
    for change in result.changes.to_pylist():
        if change[OP_COLUMN] == Op.RETRACT:
            corrected = offsets.pop(change[CORRECTS_COLUMN])
            assert corrected == exact({name: change[name] for name in row("a")})
    for values in result.rows.to_pylist():
        assert result.changes.to_pylist()[-1 - values[OFFSET_COLUMN]]["k"] == values["k"]
