"""The bounds of what is read for a user from a server of theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

CHECK_SECONDS: Final = 1.0
"""How often `Bounds.check` is called while something is read, in seconds."""


class ReplyTooLarge(Exception):
    """A server has sent more bytes for one row than admitted."""


def _unchecked() -> None:
    """The check of who waits as long as it takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """`deadline`: of the monotonic clock. `check`: called each second; ends the reading by an exception."""

    deadline: float
    check: Callable[[], None] = _unchecked
