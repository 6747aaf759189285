"""A plugin of pytest: tests that a run leaves out are not collected, and its summary says what runs them.

CI runs a share of the cases of some tests, others for each commit. Further tests run only by a target of the Makefile,
which sets a variable.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pytest

from tests.support.commit_seed import commit_seed
from tests.support.shares import VARIABLE, is_chosen

# By the target of the Makefile that runs them: how many tests.
_COUNTS: Final = pytest.StashKey[Counter[str]]()
_OUTPUT: Final = "left_out"


def left_out(variable: str, target: str) -> pytest.MarkDecorator:
    """The mark of tests that run only where the environment has the variable, which `make TARGET` sets."""
    return pytest.mark.left_out(variable, target)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes out the tests whose variable is not set, and the cases that are not in the share of this commit."""
    targets = [_target_of(item) for item in items]
    for index in _of_other_commits(items):
        targets[index] = targets[index] or "test-shares"
    counts = Counter(target for target in targets if target is not None)
    config.stash[_COUNTS] = counts
    if hasattr(config, "workeroutput"):
        config.workeroutput[_OUTPUT] = dict(counts)
    config.hook.pytest_deselected(items=[item for item, target in zip(items, targets, strict=True) if target])
    items[:] = [item for item, target in zip(items, targets, strict=True) if target is None]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes the counts from a process that tests, if it has not crashed: each collects all tests."""
    if hasattr(node, "workeroutput"):
        # A process that ended before its collection has counted nothing.
        node.config.stash[_COUNTS] = Counter(node.workeroutput.get(_OUTPUT, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for target, count in sorted(config.stash.get(_COUNTS, Counter()).items()):
        terminalreporter.write_line(f"left out: {count:,} tests that `make {target}` runs")


def _target_of(item: pytest.Item) -> str | None:
    """The target of the Makefile that runs the test; None if this run does."""
    for mark in item.iter_markers("left_out"):
        variable, target = mark.args
        if variable not in os.environ:
            return str(target)
    return None


def _of_other_commits(items: Sequence[pytest.Item]) -> list[int]:
    """Which of the tests are cases that are not in the share of this commit; none if the variable is `long`."""
    if os.environ.get(VARIABLE) == "long":
        return []
    others, numbers = [], Counter[str]()
    for index, item in enumerate(items):
        mark = item.get_closest_marker("share")
        if mark is None:
            continue
        test, _, case = item.nodeid.partition("[")
        # Tests of a module have the same cases, since these often share a fixture.
        name = test.partition("::")[0] if case else test
        if not is_chosen(name, numbers[test], mark.args[0], commit_seed()):
            others.append(index)
        numbers[test] += 1
    return others
