"""Each rule of the merge, broken on purpose, is found: within a number of histories, and by a small one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.laws.broken_rules import FILE_RULES, RULES, BrokenRule, broken
from tests.laws.histories import History, history
from tests.laws.merges import MergedTable
from tests.laws.runs import VARIABLE, Run, minutes, new_seeds, run
from tests.laws.tables import is_valid, new_tables
from tests.support.left_out import left_out
from tests.support.shares import share

_SEEDS: Final = tuple(map(str, range(150)))
_ROWS_MAX: Final = 8


def _has_key(registration: dict[str, Any]) -> bool:
    return "record_key" in registration and is_valid(registration)


def _history(seed: str) -> History:
    return history(seed, _has_key, has_clock=True)


def test_rules_hold_as_they_are() -> None:
    run(_SEEDS[:10], _history, MergedTable, _has_key).check()


# Every run checks that the rules are still in the code; a share of the runs checks that a broken one is found.
@pytest.mark.parametrize("rule", [*RULES, *FILE_RULES], ids=lambda rule: rule.name)
def test_rule_is_in_the_code(rule: BrokenRule) -> None:
    with broken(rule):
        pass


@share(9)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_broken_rule_of_the_merge_is_found(rule: BrokenRule) -> None:
    with broken(rule):
        found = run(_SEEDS, _history, MergedTable, _has_key, shrink_seconds=5, failures_max=1)
    _check_found(found)
    [failure] = found.failures.values()
    assert failure.history.rows <= _ROWS_MAX, failure


@share(3)
@pytest.mark.parametrize("rule", FILE_RULES, ids=lambda rule: rule.name)
def test_broken_rule_of_files_is_found(rule: BrokenRule) -> None:
    with new_tables() as tables, broken(rule):
        found = run(_SEEDS, _history, tables, _has_key, shrink_seconds=0, failures_max=1)
    _check_found(found)


def _check_found(found: Run) -> None:
    assert found.failures, f"{found.histories} histories hold without the rule"


@left_out(VARIABLE, "laws")
def test_merges_of_many_histories(record_property: Callable[[str, object], None]) -> None:
    found = run(new_seeds(), _history, MergedTable, _has_key, minutes=minutes() / 2)
    record_property("laws", found.text)
    found.check()
