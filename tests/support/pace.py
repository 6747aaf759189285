"""A plugin of pytest: the summary has the end of each process, and the modules that took longest.

A process that ends long before the other one is idle for the rest of the run: `tests/conftest.py` divides the tests.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

import pytest

_MODULES_SHOWN: Final = 15


def pytest_configure(config: pytest.Config) -> None:
    """Follows the run in the process that reports it, if others test."""
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(_Pace(), "pace")


class _Pace:
    """Seconds since the start of the run by process, and seconds of work by module and process."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self.ends: dict[str, float] = {}
        self.seconds: Counter[tuple[str, str]] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        process = report.node.gateway.id
        self.ends[process] = time.monotonic() - self._start
        self.seconds[report.nodeid.partition("::")[0], process] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for process, end in sorted(self.ends.items()):
            work = sum(seconds for (_, worker), seconds in self.seconds.items() if worker == process)
            terminalreporter.write_line(
                f"{process}: last test after {end:,.0f} s, {work:,.0f} s of them in tests"
            )
        for (module, process), seconds in self.seconds.most_common(_MODULES_SHOWN):
            terminalreporter.write_line(f"{seconds:8,.1f} s  {process}  {module}")
