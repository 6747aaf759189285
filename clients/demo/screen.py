"""The output of a demo: progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_PLAIN_WIDTH = 120
_TENTHS = 10


class Screen:
    """A console, and progress on it. Any thread may move the bars."""

    def __init__(self, console: Console | None = None) -> None:
        # A pipe has no width of its own; tables would be wrapped at 80 columns.
        self.console = console or Console(
            width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False
        )
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=32),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    @contextmanager
    def bars(self) -> Iterator[None]:
        """Shows bars while the context is open; their final state stays visible."""
        with self._progress:
            yield

    def say(self, text: str = "") -> None:
        """Prints a line above the bars."""
        self.console.print(text)

    def bar(self, what: str, total: int | None, unit: str) -> Bar:
        """A bar that counts up to `total`; without a total, it shows only the count."""
        return Bar(self, self._progress, what, total, unit)


class Bar:
    """One bar. Its rate is that of `count`, such as rows, while the bar itself may count days."""

    def __init__(self, screen: Screen, progress: Progress, what: str, total: int | None, unit: str) -> None:
        self._screen = screen
        self._progress = progress
        self._what = what
        self._total = total
        self._unit = unit
        self._began = time.monotonic()
        self._tenths_shown = 0
        self._task: TaskID = progress.add_task(what, total=total, rate="")

    def move(self, done: int, count: int) -> None:
        """Shows `done` as the progress."""
        if self._screen.console.is_terminal:
            self._progress.update(self._task, completed=done, rate=self._rate(count))
        elif self._total and done * _TENTHS // self._total > self._tenths_shown:
            self._tenths_shown = done * _TENTHS // self._total
            self._screen.say(f"  {self._what}: {done:,} of {self._total:,}, {self._rate(count)}")

    def end(self, done: int) -> None:
        """Shows a bar without a total as complete."""
        self._progress.update(self._task, total=done, completed=done)

    def _rate(self, count: int) -> str:
        return f"{count / max(time.monotonic() - self._began, 1e-3):,.0f} {self._unit}/s"
