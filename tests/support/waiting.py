"""Waiting for something that other processes bring about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(
    probe: Callable[[], Found | None], what: str, *, seconds_max: float = 30, pause_seconds: float = 0.01
) -> Found:
    """What `probe` finds once it finds something true. Fails if that takes longer than `seconds_max`."""
    deadline = time.monotonic() + seconds_max
    while True:
        if found := probe():
            return found
        assert time.monotonic() < deadline, f"waited {seconds_max:g} s in vain for {what}"
        time.sleep(pause_seconds)
