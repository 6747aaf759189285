"""Folds a feed of changes, column by column, and compares tables.

The fold checks two laws of the feed: a -C is directly followed by the +C of its key, and a -R or -C has exactly the
values that it retracts. So the feed alone, in any number of pages, gives the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = 0, 1, 2, 3
SYMBOLS = ("+A", "-R", "-C", "+C")
SYSTEM_COLUMNS = ("offset", "op", "system_time", "event_time", "version", "corrects_offset")


class FeedBroken(Exception):
    """The changes do not form a feed. The message has the first change that does not fit."""


def fold(changes: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """The rows after all changes of a keyed dataset are applied to an empty table."""
    columns = [name for name in changes.columns if name not in SYSTEM_COLUMNS]
    _refuse(changes.filter(pl.col("offset") != pl.int_range(pl.len())), "offsets have a gap before")
    _check_pairs(changes, key)
    history = changes.sort([*key, "offset"])
    puts = pl.col("op").is_in([APPEND, CORRECT_TO])
    follows = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in key).fill_null(value=False)
    history = history.with_columns(_puts=puts, _follows=follows)
    before = pl.col("_follows") & pl.col("_puts").shift(1, fill_value=False)
    _refuse(history.filter(pl.col("_puts") & before), "the key was already live at")
    _refuse(history.filter(~pl.col("_puts") & ~before), "the key was not live at")
    was_there = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in columns)
    _refuse(
        history.filter(~pl.col("_puts") & ~was_there), "the table had other values than those retracted by"
    )
    last = ~pl.col("_follows").shift(-1, fill_value=False)
    return history.filter(last & pl.col("_puts")).select(columns)


def _check_pairs(changes: pl.DataFrame, key: Sequence[str]) -> None:
    same_key = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in key).fill_null(
        value=False
    )
    opens = pl.col("op") == CORRECT_FROM
    closes_next = (pl.col("op") == CORRECT_TO).shift(-1, fill_value=False)
    _refuse(changes.filter(opens & ~(closes_next & same_key)), "no +C of the same key follows")
    _refuse(changes.filter(closes_next & ~opens), "a +C without its -C follows")
    _refuse(changes.head(1).filter(pl.col("op") == CORRECT_TO), "the feed starts with")


def _refuse(wrong: pl.DataFrame, what: str) -> None:
    if wrong.height:
        change = wrong.sort("offset").row(0, named=True)
        change["op"] = SYMBOLS[change["op"]]
        raise FeedBroken(f"{what} change {change}")


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedMismatch:
    """The differences of two tables with the same key, in rows; all zero if they are equal."""

    only_left: int
    only_right: int
    other_values: int

    def __bool__(self) -> bool:
        return bool(self.only_left or self.only_right or self.other_values)


def difference(left: pl.DataFrame, right: pl.DataFrame, key: Sequence[str]) -> FeedMismatch:
    """Compares every value of every row; the order of rows has no effect."""
    keys = list(key)
    left, right = left.sort(keys), right.select(left.columns).sort(keys)
    if left.equals(right, null_equal=True):
        return FeedMismatch(only_left=0, only_right=0, other_values=0)
    both = left.join(right, on=keys, how="inner", suffix="_right")
    rest = [name for name in left.columns if name not in keys]
    equal = pl.all_horizontal(pl.lit(value=True), *(pl.col(n).eq_missing(pl.col(f"{n}_right")) for n in rest))
    return FeedMismatch(
        only_left=left.join(right, on=keys, how="anti").height,
        only_right=right.join(left, on=keys, how="anti").height,
        other_values=both.filter(~equal).height,
    )
