"""Histories one after another, until the time is over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from tests.laws.checks import Failure, NewDataset, check_cuts, shrunk
from tests.laws.histories import History

VARIABLE: Final = "LAWS_MINUTES"
"""How long the histories of one level run; without it, a share of a few seeds runs."""
SHRINK_SECONDS: Final = 60.0
_FAILURES_MAX: Final = 3


@dataclass(kw_only=True)
class Run:
    """The histories that ran, with the rows of all their cuts. `failures`: by seed, the smallest ones."""

    histories: int = 0
    rows: int = 0
    seconds: float = 0.0
    failures: dict[str, Failure] = field(default_factory=dict)

    @property
    def text(self) -> str:
        minutes = max(self.seconds, 0.001) / 60
        return (
            f"{self.histories:,} histories ({self.histories / minutes:,.0f} a minute), "
            f"{self.rows:,} rows ({self.rows / minutes:,.0f} a minute), {len(self.failures)} failures"
        )

    def __add__(self, other: Run) -> Run:
        return Run(
            histories=self.histories + other.histories,
            rows=self.rows + other.rows,
            seconds=self.seconds + other.seconds,
            failures=self.failures | other.failures,
        )

    def check(self) -> None:
        """Raises AssertionError with every failure, if there is one."""
        shown = [f"seed {seed}: {failure}" for seed, failure in self.failures.items()]
        assert not shown, "\n".join(shown)


def run(
    seeds: Iterable[str],
    history_of: Callable[[str], History],
    new_dataset: NewDataset,
    is_valid: Callable[..., bool],
    *,
    minutes: float | None = None,
    shrink_seconds: float = SHRINK_SECONDS,
    failures_max: int = _FAILURES_MAX,
) -> Run:
    """Checks the histories of the seeds, and shrinks those that fail, up to `failures_max`.

    `minutes`: no history begins later.
    """
    found, start = Run(), time.monotonic()
    for seed in seeds:
        if minutes is not None and time.monotonic() - start > 60 * minutes:
            break
        try:
            found.rows += check_cuts(history_of(seed), seed, new_dataset, is_valid)
        except Failure as failure:
            found.failures[seed] = shrunk(failure, new_dataset, shrink_seconds)
        found.histories += 1
        found.seconds = time.monotonic() - start
        if len(found.failures) >= failures_max:
            break
    return found


def minutes() -> float:
    """How long this run takes."""
    return float(os.environ[VARIABLE])


def new_seeds() -> Iterable[str]:
    """Seeds that no other run has."""
    first = time.time_ns()
    return (f"{first}-{number}" for number in count())
