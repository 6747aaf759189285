"""Each rule of the merge, broken on purpose, is found: within a number of histories, and by a small one."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.laws.broken_rules import RULES, BrokenRule, broken
from tests.laws.histories import History, history
from tests.laws.merges import MergedTable
from tests.laws.runs import run
from tests.laws.tables import is_valid
from tests.support.shares import share

_HISTORIES_MAX: Final = 150
_ROWS_MAX: Final = 8


def _has_key(registration: dict[str, Any]) -> bool:
    return "record_key" in registration and is_valid(registration)


def _history(seed: str) -> History:
    return history(seed, _has_key, has_clock=True)


def test_rules_hold_as_they_are() -> None:
    run(map(str, range(10)), _history, MergedTable, _has_key).check()


@share(6)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_broken_rule_is_found(rule: BrokenRule) -> None:
    with broken(rule):
        found = run(
            map(str, range(_HISTORIES_MAX)),
            _history,
            MergedTable,
            _has_key,
            shrink_seconds=5,
            failures_max=1,
        )
    assert found.failures, f"{found.histories} histories hold without the rule"
    [failure] = found.failures.values()
    assert failure.history.rows <= _ROWS_MAX, failure
