"""Every way to write, with rows for a table of fixed contents; which ways a dataset refuses, and with which reason.

All histories begin with the same rows, so what each way does to them is fixed too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.kernel.commit.write_options import DEFAULT_OPTIONS, OnError, Overwrite, OverwriteScope, WriteOptions
from app.kernel.commit.write_rules import check_options
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from tests.conformance.kinds import Reason
from tests.support.lake_table import Row, Write

Predicate = Callable[[Row], bool]


def row(p: str, key: int, ts: int | None = 1, **values: Any) -> Row:
    """A row with something in every field."""
    shown: Row = {"seen": ts, "name": f"{p}{key}", "n": key, "total": key / 2, "tags": [p], "gone": False}
    return {"p": p, "id": key, "ts": ts, **shown, **values}


# Keys 1–4 in partition a, 11–15 in b; ids are unique in the table, since under key_dynamic they are the key.
BASE: Final = [
    row("a", 1, 5),
    row("a", 2, 5),
    row("a", 3, 5),
    row("b", 11, 5),
    row("b", 12, 5),
    row("b", 15, 5),
]
# Late, equal and newer rows, one with nulls, two of one key.
MORE: Final = [
    row("a", 2, 3, name="late"),
    row("a", 3, 6, name="newer", seen=2),
    row("b", 12, 5),
    row("b", 11, 7, name=None, tags=None, n=None, seen=None),
    row("a", 4, 5),
    row("b", 13, 5, name="one"),
    row("b", 13, 6, name="two"),
]
FRESH: Final = [row("a", 5, 5), row("c", 21, 5), row("c", 22, 5)]
MIXED: Final = [*FRESH, row("a", 1, 9, name="again"), row("b", 12, 1, name="again")]


@dataclass(frozen=True, kw_only=True, eq=False)
class Way:
    """One way to write. `keyed`, `unkeyed`: its rows, for datasets with a key and without.

    `removes`: which of the live rows it takes out, unless its rows bring them; None where it names rows by key.
    """

    name: str
    operation: Operation
    options: WriteOptions = DEFAULT_OPTIONS
    keyed: Sequence[Row] = ()
    unkeyed: Sequence[Row] = ()
    removes: Predicate | None = None

    def write(self, *, keyed: bool) -> Write:
        rows = self.keyed if keyed else self.unkeyed
        return Write(operation=self.operation, options=self.options, rows=rows)

    def refusal(self, dataset: DatasetDefinition) -> tuple[Reason, ...]:
        """Why the dataset does not take it; empty if it does."""
        try:
            check_options(self.operation, self.options, dataset)
        except InvalidRequest as refusal:
            return tuple((error["pointer"], error["detail"]) for error in refusal.facts["errors"])
        return ()


def _change(op: Op, values: Row) -> Row:
    return {OP_COLUMN: int(op), **values}


_QUARANTINE: Final = WriteOptions(on_error=OnError.QUARANTINE)
_WHERE: Final = "n >= 3 AND n < 15"


def _matches(values: Row) -> bool:
    return values["n"] is not None and 3 <= values["n"] < 15


_IN_SCOPE: Final = [row("a", 3, 1, name="put"), row("b", 14, 5, name="put"), row("b", 12, 5)]
_WHOLE: Final = [*BASE[:1], row("a", 2, 1, name="older"), row("b", 11, 9, n=77), row("c", 21, 5)]
_PARTS: Final = [row("a", 2, 1, name="older"), row("a", 3, 5), row("c", 21, 5)]
_CHANGES: Final = [
    _change(Op.APPEND, FRESH[0]),
    _change(Op.CORRECT_FROM, BASE[0]),
    _change(Op.CORRECT_TO, row("a", 1, 8, name="corrected")),
    _change(Op.RETRACT, {"p": "b", "id": 12}),
    _change(Op.RETRACT, row("a", 2, 1)),
    _change(Op.CORRECT_TO, row("b", 11, 8, name="alone")),
    _change(Op.RETRACT, {"p": "b", "id": 15}),
    _change(Op.APPEND, row("b", 15, 2, name="anew")),
]

# Without a key: of two equal rows one goes, a row that is added goes again, and another one comes back.
_ROW_CHANGES: Final = [
    _change(Op.APPEND, FRESH[0]),
    _change(Op.RETRACT, BASE[0]),
    _change(Op.CORRECT_FROM, BASE[3]),
    _change(Op.CORRECT_TO, row("b", 11, 8, name="corrected")),
    _change(Op.APPEND, row("c", 21, 5)),
    _change(Op.RETRACT, row("c", 21, 5)),
    _change(Op.RETRACT, BASE[5]),
    _change(Op.APPEND, BASE[5]),
    _change(Op.RETRACT, MORE[3]),
]
_ROWS_NOT_THERE: Final = [
    _change(Op.RETRACT, row("a", 1, 5, tags=["other"])),
    _change(Op.RETRACT, row("d", 1)),
    _change(Op.RETRACT, BASE[3]),
]

WAYS: Final = (
    Way(name="insert", operation=Operation.INSERT, keyed=FRESH, unkeyed=MIXED),
    Way(
        name="insert, drop_duplicates",
        operation=Operation.INSERT,
        options=WriteOptions(drop_duplicates=True),
        keyed=MIXED,
    ),
    Way(
        name="insert, quarantine",
        operation=Operation.INSERT,
        options=_QUARANTINE,
        keyed=MIXED,
        unkeyed=MIXED,
    ),
    Way(name="bulk_insert", operation=Operation.BULK_INSERT, keyed=FRESH, unkeyed=MIXED),
    Way(
        name="upsert",
        operation=Operation.UPSERT,
        keyed=[
            *MIXED,
            row("a", 3, 9, name=None, tags=None, seen=None),
            row("b", 11, 9, gone=True),
            row("b", 15, 1, gone=True),
            row("a", 4, 5),
        ],
    ),
    Way(
        name="delete, keys",
        operation=Operation.DELETE,
        keyed=[
            {"p": "a", "id": 1},
            {"p": "a", "id": 3, "ts": 1},
            {"p": "b", "id": 11, "ts": 9},
            {"p": "c", "id": 99},
        ],
    ),
    Way(
        name="delete, filter",
        operation=Operation.DELETE,
        options=WriteOptions(where=_WHERE),
        removes=_matches,
    ),
    Way(
        name="delete_partition",
        operation=Operation.DELETE_PARTITION,
        options=WriteOptions(partitions=("p=b",)),
        removes=lambda values: values["p"] == "b",
    ),
    Way(
        name="overwrite, table",
        operation=Operation.OVERWRITE,
        options=WriteOptions(overwrite=Overwrite()),
        keyed=_WHOLE,
        unkeyed=_WHOLE,
        removes=lambda values: True,
    ),
    Way(
        name="overwrite, partitions",
        operation=Operation.OVERWRITE,
        options=WriteOptions(overwrite=Overwrite(scope=OverwriteScope.PARTITIONS)),
        keyed=_PARTS,
        unkeyed=_PARTS,
        removes=lambda values: values["p"] in ("a", "c"),
    ),
    Way(
        name="overwrite, filter",
        operation=Operation.OVERWRITE,
        options=WriteOptions(overwrite=Overwrite(scope=OverwriteScope.FILTER, where=_WHERE)),
        keyed=_IN_SCOPE,
        unkeyed=_IN_SCOPE,
        removes=_matches,
    ),
    Way(
        name="snapshot",
        operation=Operation.SNAPSHOT,
        keyed=_WHOLE,
        unkeyed=_WHOLE,
        removes=lambda values: True,
    ),
    Way(name="changelog", operation=Operation.CHANGELOG, keyed=_CHANGES, unkeyed=_ROW_CHANGES),
    Way(
        name="changelog, quarantine",
        operation=Operation.CHANGELOG,
        options=_QUARANTINE,
        keyed=_CHANGES,
        unkeyed=[*_ROW_CHANGES, *_ROWS_NOT_THERE],
    ),
)

LIVE_KEYS: Final = Way(name="insert of live keys", operation=Operation.INSERT, keyed=[*FRESH, BASE[5]])
"""Fails as the table stands, which no registration can know."""

BEGIN: Final = {
    True: Way(name="base", operation=Operation.UPSERT, keyed=BASE),
    False: Way(name="base", operation=Operation.INSERT, unkeyed=[*BASE, BASE[0]]),
}
CONTINUE: Final = {
    True: Way(name="more", operation=Operation.UPSERT, keyed=MORE),
    False: Way(name="more", operation=Operation.BULK_INSERT, unkeyed=MORE),
}
_THEN: Final = {
    True: Way(
        name="then upsert",
        operation=Operation.UPSERT,
        keyed=[
            row("a", 1, 10, name="then"),
            row("a", 2, 2, name="then, late"),
            row("b", 12, 10, name=None, n=4),
            row("b", 14, 6),
            row("c", 21, 5),
            row("c", 23, 5),
            row("b", 15, 10, tags=[]),
        ],
    ),
    False: Way(name="then insert", operation=Operation.INSERT, unkeyed=[BASE[1], row("c", 41)]),
}
_THEN_DELETE: Final = {
    True: Way(
        name="then delete",
        operation=Operation.DELETE,
        keyed=[
            {"p": "a", "id": 2},
            {"p": "b", "id": 11, "ts": 99},
            {"p": "c", "id": 21},
            {"p": "b", "id": 15, "ts": 1},
        ],
    ),
    False: Way(
        name="then delete, filter",
        operation=Operation.DELETE,
        options=WriteOptions(where="p = 'a'"),
        removes=lambda values: values["p"] == "a",
    ),
}
MOVES: Final = Way(
    name="rows that come with another partition",
    operation=Operation.UPSERT,
    keyed=[row("b", 1, 9, name="moved"), row("c", 12, 9), row("a", 15, 1, name="late"), row("c", 99, 1)],
)


def then(way: Way, *, keyed: bool) -> Way:
    """A second write, of another kind than the first."""
    first = _THEN if way.operation is not Operation.UPSERT and (keyed or not _appends(way)) else _THEN_DELETE
    return first[keyed]


def _appends(way: Way) -> bool:
    return way.operation in (Operation.INSERT, Operation.BULK_INSERT)
