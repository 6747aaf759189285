"""The laws on tables of files: however the same rows are cut into writes, the table is that of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.laws.checks import check
from tests.laws.histories import History, history
from tests.laws.runs import VARIABLE, Run, minutes, new_seeds, run
from tests.laws.tables import FileTable, Tables, is_valid, new_tables, small_limits
from tests.support.left_out import left_out
from tests.support.shares import share

REPRODUCTIONS: Final = (Path(__file__).parent / "reproductions.txt").read_text(encoding="utf-8").splitlines()
"""Histories as JSON, one on each line."""
_LIMITS: Final = 12
"""How many limits of tables there are, see `small_limits`."""


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    with new_tables() as found:
        yield found


def _history(seed: str) -> History:
    return history(seed, is_valid, has_clock=FileTable.has_clock)


@share(20)
@pytest.mark.parametrize("seed", range(240))
def test_table_is_that_of_the_model_however_rows_are_cut(tables: Tables, seed: int) -> None:
    with small_limits(seed):
        run([str(seed)], _history, tables, is_valid).check()


@pytest.mark.parametrize("number", range(len(REPRODUCTIONS)))
def test_history_that_once_broke_a_law(tables: Tables, number: int) -> None:
    check(History.of(REPRODUCTIONS[number]), tables)


@left_out(VARIABLE, "laws")
def test_tables_of_many_histories(tables: Tables, record_property: Callable[[str, object], None]) -> None:
    total = Run()
    for limits in range(_LIMITS):
        with small_limits(limits):
            total += run(new_seeds(), _history, tables, is_valid, minutes=minutes() / 2 / _LIMITS)
    record_property("laws", total.text)
    total.check()
