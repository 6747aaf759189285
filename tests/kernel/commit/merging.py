"""What tests of the merge share: datasets of every mode, rows and writes, and a check of all that a merge hands out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from app.kernel.commit.merge.merge import merge
from app.kernel.commit.merge.outcome import MergeResult
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import Aggregate, BucketMode, DatasetDefinition, MergeMode
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateDataset,
    CreateField,
    CreateSchema,
    CreateSequenceGroup,
)
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op, fold
from app.kernel.format.rows.meta_columns import (
    CORRECTS_COLUMN,
    META_FIELDS,
    META_NAMES,
    OFFSET_COLUMN,
    VERSION_COLUMN,
)
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN
from app.kernel.format.rows.tombstones import (
    DELETED_AT_FIELD,
    KEEP_FIELD,
    ORDERING_COLUMN,
    tombstone_schema,
)
from tests.kernel.commit.reference import Key, Row, Table, Write, exact

FIELDS = [
    CreateField(name="k", type="string"),
    CreateField(name="n", type="int32"),
    CreateField(name="ts", type="int64"),
    CreateField(name="price", type="decimal(10, 2)"),
    CreateField(name="tags", type="map<string, list<int32>>"),
    CreateField(name="g", type="int64"),
    CreateField(name="name", type="string"),
    CreateField(name="items", type="list<struct<a: int32>>"),
    CreateField(name="flag", type="boolean"),
    CreateField(name="size", type="int8"),
    CreateField(name="big", type="int64"),
    CreateField(name="ratio", type="double"),
]
VALUES: dict[str, Any] = dict.fromkeys(
    ("ts", "price", "tags", "g", "name", "items", "flag", "size", "big", "ratio")
)


def row(k: str, ts: int | None = 1, n: int = 0, **values: Any) -> Row:
    return {"k": k, "n": n, **VALUES, "ts": ts, **values}


def dataset(*, ordered: bool = False, key: Sequence[str] = ("k",), **parts: Any) -> DatasetDefinition:
    parts.setdefault("schema", CreateSchema(fields=FIELDS))
    parts.setdefault("ordering_field", "ts" if ordered else None)
    return define_dataset(CreateDataset(name="t", record_key=list(key), **parts))


_NUMBERS = [Aggregate.SUM, Aggregate.MIN, Aggregate.MAX, Aggregate.COUNT]
_ANY = [Aggregate.LAST, Aggregate.LAST_NON_NULL, Aggregate.FIRST]
_FUNCTIONS = {
    "price": [Aggregate.SUM, Aggregate.MIN, Aggregate.MAX, *_ANY],
    "tags": _ANY,
    "g": [*_NUMBERS, *_ANY],
    "name": [Aggregate.MIN, Aggregate.MAX, *_ANY],
    "items": [Aggregate.COLLECT, *_ANY],
    "flag": [Aggregate.BOOL_AND, Aggregate.BOOL_OR, *_ANY],
    "big": [*_NUMBERS, *_ANY],
    "ratio": [Aggregate.SUM, Aggregate.MIN, Aggregate.MAX, *_ANY],
}
_GROUPS = [
    CreateSequenceGroup(ordering_field="g", fields=["name", "items"]),
    CreateSequenceGroup(ordering_field="big", fields=["ratio"]),
]


@st.composite
def datasets(draw: st.DrawFn, *, ordered: bool | None = None) -> DatasetDefinition:
    """Of every merge mode, with and without an ordering field (unless specified), sequence groups and aggregates."""
    mode = draw(
        st.sampled_from([each for each in MergeMode if each is not MergeMode.EVENT_TIME or ordered is None])
    )
    if ordered is None:
        ordered = mode is MergeMode.EVENT_TIME or (mode is not MergeMode.FIRST and draw(st.booleans()))
    parts: dict[str, Any] = {"merge_mode": mode}
    if mode is MergeMode.PARTIAL:
        parts["sequence_groups"] = draw(st.lists(st.sampled_from(_GROUPS), unique_by=id))
    if mode is MergeMode.AGGREGATE:
        optional = {name: st.sampled_from(functions) for name, functions in _FUNCTIONS.items()}
        parts["aggregates"] = draw(st.fixed_dictionaries({}, optional=optional))
    # Under key_dynamic the partition is no part of the key, so that a row can come with another one.
    if draw(st.booleans()):
        parts |= {"partition_by": ["n"], "bucket": CreateBucket(mode=BucketMode.KEY_DYNAMIC)}
        return dataset(ordered=ordered, **parts)
    return dataset(ordered=ordered, key=draw(st.sampled_from([["k"], ["k", "n"]])), **parts)


def _or_null(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


ROWS = st.builds(
    row,
    k=st.sampled_from(["a", "a", "", "ü\u2028"]),
    n=st.sampled_from([0, 1]),
    ts=_or_null(st.integers(0, 3)),
    price=_or_null(st.decimals("-1", "1", places=2)),
    tags=st.sampled_from([None, [], [("x", [1, None])], [("x", None), ("y", [])], [("y", []), ("x", None)]]),
    g=_or_null(st.integers(-1, 1)),
    name=_or_null(st.sampled_from(["", "x", "é"])),
    items=st.sampled_from([None, [], [None], [{"a": None}], [{"a": None}, {"a": 1}]]),
    flag=_or_null(st.booleans()),
    size=_or_null(st.sampled_from([-100, 1, 100])),
    big=_or_null(st.integers(0, 1)),
    ratio=_or_null(st.sampled_from([0.0, -0.0, 0.5, -2.0])),
)
_OPS = {
    Operation.DELETE: st.just(Op.RETRACT),
    Operation.UPSERT: st.sampled_from([Op.APPEND, Op.APPEND, Op.RETRACT]),
    # Mostly corrections, so that many are found beside each other.
    Operation.CHANGELOG: st.sampled_from([*Op, Op.CORRECT_FROM, Op.CORRECT_TO, Op.CORRECT_TO]),
}


_KEPT_FOR = 10


@st.composite
def writes(draw: st.DrawFn, operations: Sequence[Operation], min_size: int = 1) -> Write:
    """Deletes of those with a `keep` leave tombstones, for a time that a later write may be after."""
    operation = draw(st.sampled_from(operations))
    ops = _OPS.get(operation, st.just(Op.APPEND))
    option = draw(st.sampled_from(["none", "drop", "quarantine"]))
    return Write(
        operation=operation,
        rows=draw(st.lists(st.tuples(ops, ROWS), min_size=min_size, max_size=6)),
        drop=option == "drop",
        quarantine=option == "quarantine",
        by_arrival=operation is Operation.CHANGELOG and draw(st.booleans()),
        keep=draw(st.sampled_from([0, _KEPT_FOR])) if operation in _OPS else 0,
        at=draw(st.sampled_from([0, 0, _KEPT_FOR, _KEPT_FOR + 1])),
    )


# Operations that run in groups with others; the rest take the place of what is there and run by themselves.
GROUPED = (
    Operation.INSERT,
    Operation.UPSERT,
    Operation.BULK_INSERT,
    Operation.DELETE,
    Operation.CHANGELOG,
    Operation.OVERWRITE,
)


def current_rows(dataset: DatasetDefinition, rows: Sequence[Row]) -> pa.Table:
    """Live rows, each with a version and an offset of its own."""
    table = pa.Table.from_pylist(list(rows), schema=dataset.schema.to_arrow())
    for meta, first in zip(META_FIELDS, (1, 100), strict=True):
        table = table.append_column(meta, pa.array([first + at for at in range(len(rows))], pa.int64()))
    return table


def incoming_rows(dataset: DatasetDefinition, writes: Sequence[Write]) -> pa.Table:
    relaxed = pa.schema([entry.with_nullable(True) for entry in dataset.schema.to_arrow()])
    rows = [values for write in writes for _, values in write.rows]
    table = pa.Table.from_pylist(rows, schema=relaxed)
    table = table.add_column(
        0, OP_FIELD, pa.array([op for write in writes for op, _ in write.rows], pa.uint8())
    )
    positions = [at for write in writes for at in range(len(write.rows))]
    jobs = [number for number, write in enumerate(writes) for _ in write.rows]
    return table.append_column(ROW_COLUMN, pa.array(positions, pa.int64())).append_column(
        JOB_COLUMN, pa.array(jobs, pa.int32())
    )


def intents(dataset: DatasetDefinition, writes: Sequence[Write]) -> dict[int, WriteIntent]:
    return {
        number: WriteIntent(
            operation=write.operation,
            drop_duplicates=write.drop,
            quarantine=write.quarantine,
            by_arrival=write.by_arrival,
            keep_seconds=write.keep if Table(dataset=dataset).ordered else 0,
            committed_at=datetime.fromtimestamp(write.at, UTC),
        )
        for number, write in enumerate(writes)
    }


def touched(table: Table, writes: Sequence[Write]) -> list[Row]:
    """The live rows that a merge of the writes needs."""
    keys = {table.key(values) for write in writes for _, values in write.rows}
    keys |= {key for write in writes for key in write.rest or ()}
    return [values for key, values in table.live.items() if key in keys]


def tombstone_rows(table: Table) -> pa.Table:
    """The tombstones of the table, in the order of their keys, as a file has them."""
    schema = tombstone_schema(table.dataset)
    rows = [
        {
            **dict(zip(table.dataset.record_key, key, strict=True)),
            ORDERING_COLUMN: each.order[1] if each.order[0] else None,
            VERSION_COLUMN: 1,
            DELETED_AT_FIELD.name: datetime.fromtimestamp(each.until - each.keep, UTC),
            KEEP_FIELD.name: each.keep,
        }
        for key, each in table.tombstones.items()
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def run(table: Table, writes: Sequence[Write]) -> MergeResult:
    """Merges the writes, as one group, into those live rows whose keys they touch."""
    return merge(
        table.dataset,
        current_rows(table.dataset, touched(table, writes)),
        incoming_rows(table.dataset, writes),
        intents(table.dataset, writes),
        tombstones=tombstone_rows(table),
        retract_rest=any(write.rest is not None for write in writes),
    )


def feed(result: MergeResult) -> list[tuple[int, Row]]:
    changes = result.changes.drop_columns([CORRECTS_COLUMN])
    return [(entry.pop(OP_COLUMN), entry) for entry in changes.to_pylist()]


def by_key(table: Table, changes: Sequence[tuple[int, Row]]) -> dict[Key, list[tuple[int, str]]]:
    """Changes per key, in order: between different keys the merge is free to choose the order."""
    grouped: dict[Key, list[tuple[int, str]]] = {}
    for op, values in changes:
        grouped.setdefault(table.key(values), []).append((op, exact(values)))
    return grouped


def check(start: Table, writes: Sequence[Write], end: Table, counts: Sequence[dict[str, int]]) -> MergeResult:
    """Holds a merge of the writes into `start` to what the model made of them one after another."""
    result = run(start, writes)
    assert result.conflicts == ()
    assert result.counts == {at: RowCounts(**each) for at, each in enumerate(counts)}
    changes = feed(result)
    assert by_key(end, changes) == by_key(end, end.feed)
    folded = fold([(Op.APPEND, each) for each in start.live.values()] + changes, end.dataset.record_key)
    assert {end.key(values): values for values in folded} == end.live
    current = touched(start, writes)
    _check_rows(start, end, current, writes, result)
    _check_past(end, current, result)
    _check_tombstones(start, end, current, result)
    quarantined = sum(each["quarantined"] for each in counts)
    assert result.quarantined_rows.num_rows == quarantined
    assert result.quarantined_rows.schema == incoming_rows(end.dataset, writes).schema
    return result


def _check_rows(
    start: Table, end: Table, current: Sequence[Row], writes: Sequence[Write], result: MergeResult
) -> None:
    keys = {end.key(values) for values in current} | {
        end.key(values) for write in writes for _, values in write.rows
    }
    kept = [values for values, stays in zip(current, result.stays, strict=True) if stays]
    rows = result.rows.drop_columns(list(META_NAMES)).to_pylist()
    stored = {end.key(values): exact(values) for values in kept + rows}
    assert stored == {key: exact(values) for key, values in end.live.items() if key in keys}
    assert len(kept) + len(rows) == len(stored)
    numbers = _numbers_before(start, current)
    assert result.replaces.tolist() == [numbers.get(end.key(values), -1) for values in rows]


def _numbers_before(start: Table, current: Sequence[Row]) -> dict[Key, int]:
    """What a merge numbers: the live rows that it gets, and the tombstones behind them."""
    keys = [*(start.key(values) for values in current), *start.tombstones]
    return {key: number for number, key in enumerate(keys)}


def _check_tombstones(start: Table, end: Table, current: Sequence[Row], result: MergeResult) -> None:
    stay = dict(zip(start.tombstones, result.tombstones_stay.tolist(), strict=True))
    left = {key: each for key, each in start.tombstones.items() if stay[key]}
    fresh = [] if result.tombstones is None else result.tombstones.to_pylist()
    numbers = _numbers_before(start, current)
    assert result.tombstones_replace.tolist() == [numbers.get(end.key(each), -1) for each in fresh]
    for each in fresh:
        key = end.key(each)
        assert key not in left
        expected = end.tombstones[key]
        assert each[ORDERING_COLUMN] == (expected.order[1] if expected.order[0] else None)
        assert (each[VERSION_COLUMN], each[DELETED_AT_FIELD.name]) == (None, None)
        assert each[KEEP_FIELD.name] == expected.keep
        left[key] = expected
    assert left == end.tombstones
    assert not end.tombstones.keys() & end.live.keys()


def _check_past(end: Table, current: Sequence[Row], result: MergeResult) -> None:
    """Every change that takes values back names the change that set them, and so does every row that is live."""
    offsets = {end.key(values): 100 + at for at, values in enumerate(current)}
    for at, change in enumerate(result.changes.to_pylist()):
        if change[OP_COLUMN] in (Op.RETRACT, Op.CORRECT_FROM):
            assert change[CORRECTS_COLUMN] == offsets.pop(end.key(change))
        else:
            assert change[CORRECTS_COLUMN] is None
            offsets[end.key(change)] = -1 - at
    for stored in result.rows.to_pylist():
        assert stored[VERSION_COLUMN] is None
        assert stored[OFFSET_COLUMN] == offsets[end.key(stored)]
