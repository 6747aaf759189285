"""A plugin of pytest: a run in which fewer tests end than were collected fails, and so do equal node ids.

Where tests run in several processes, xdist keeps one of the tests with equal ids, and the others never run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import pytest

_SHOWN_MAX: Final = 10


def pytest_configure(config: pytest.Config) -> None:
    """Follows the run in the process that reports it."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Run(), "complete-run")


class _Run:
    """The node ids of one run: those collected, and those of tests that have ended."""

    def __init__(self) -> None:
        self.collected: frozenset[str] = frozenset()
        self.ended: set[str] = set()
        self.missing: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self.collect(ids)

    def collect(self, ids: Iterable[str]) -> None:
        """Raises `UsageError` if two of the ids are equal."""
        counts = Counter(ids)
        if repeated := [f"{name} ({count} times)" for name, count in counts.items() if count > 1]:
            raise pytest.UsageError(f"tests with equal node ids: {_shown(repeated)}")
        self.collected = frozenset(counts)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.ended.add(nodeid)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fails a run that is about to pass. One that was stopped has failed already."""
        if exitstatus == pytest.ExitCode.OK and not session.config.option.collectonly:
            self.missing = sorted(self.collected - self.ended)
            if self.missing:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.missing:
            line = f"{len(self.missing)} of {len(self.collected)} tests did not run: {_shown(self.missing)}"
            terminalreporter.write_line(line, red=True)


def _shown(names: Sequence[str]) -> str:
    """The first of the names."""
    return ", ".join(names[:_SHOWN_MAX]) + (" …" if len(names) > _SHOWN_MAX else "")
