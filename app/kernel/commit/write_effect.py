"""The effect of a write on a key, as far as it is known before the write runs, and what its deletes leave."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from app.kernel.commit.write_options import WriteOptions
from app.kernel.commit.write_rules import applies_by_arrival
from app.kernel.format.dataset import DatasetDefinition, has_tombstones
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op


class WriteEffect(str, Enum):
    """The effect of a row. `merge`: the rule of the merge mode decides between the row and the live one, or the
    tombstone. `late`: the tombstone of its key keeps it away.
    """

    INSERT = "insert"
    MERGE = "merge"
    REPLACE = "replace"
    DELETE = "delete"
    NOTHING = "nothing"
    LATE = "late"
    REFUSE = "refuse"
    QUARANTINE = "quarantine"
    DROP = "drop"


def effect_of(
    operation: Operation,
    op: int,
    *,
    live: bool,
    drop_duplicates: bool,
    quarantine: bool,
    kept_away: bool | None = False,
) -> WriteEffect:
    """The effect of a row on its key. `op`: the operation of the row. `live`: whether the key has a row. `kept_away`:
    whether the tombstone of the key, if it has one, is of a greater ordering value; None if that of the row is unknown.
    """
    if op in (Op.RETRACT, Op.CORRECT_FROM):
        return WriteEffect.DELETE if live else WriteEffect.NOTHING
    if not live and kept_away and not operation.replaces:
        return WriteEffect.LATE
    if not live:
        return WriteEffect.MERGE if kept_away is None else WriteEffect.INSERT
    if operation.replaces:
        return WriteEffect.REPLACE
    if not operation.refuses_live_keys:
        return WriteEffect.MERGE
    if drop_duplicates:
        return WriteEffect.DROP
    return WriteEffect.QUARANTINE if quarantine else WriteEffect.REFUSE


def keep_seconds(operation: Operation, options: WriteOptions, dataset: DatasetDefinition) -> int:
    """How long the tombstones of a write last, in seconds; 0 for one that leaves none.

    Rows that are removed because a write lacks them, by a condition, or in the order of arrival leave none.
    """
    match operation:
        case Operation.DELETE:
            leaves = options.where is None and options.tombstone
        case Operation.UPSERT:
            leaves = dataset.delete_marker is not None
        case Operation.CHANGELOG:
            leaves = not applies_by_arrival(operation, options)
        case _:
            leaves = False
    return dataset.keep_seconds if leaves else 0


def compares_with_tombstones(dataset: DatasetDefinition, live: Iterable[DataFile]) -> bool:
    """Whether a merge with these live files may leave tombstones, or find some there or in logs."""
    if not has_tombstones(dataset.ordering_field, dataset.merge_mode):
        return False
    return dataset.keep_seconds > 0 or any(file.kind is not FileKind.BASE for file in live)
