"""Calls at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def together(calls: Sequence[Callable[[], Result]], *, seconds_max: float = 60) -> list[Result]:
    """Runs each call on a thread of its own; their results in order. The first error is raised."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(timeout=seconds_max) for future in [pool.submit(call) for call in calls]]
