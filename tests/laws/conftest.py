"""The figures of a run, in its last lines."""

from __future__ import annotations

import pytest

PROPERTY = "laws"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, value in getattr(report, "user_properties", ()):
                if name == PROPERTY:
                    terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {value}")
