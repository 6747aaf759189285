"""The bounds of a connection to a user's database, whatever its protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

CHECK_SECONDS: Final = 1.0
"""How often `Bounds.check` is called while a connection is used, in seconds."""


class ReplyTooLarge(Exception):
    """A server has sent more bytes for one row, or one command, than admitted."""


def _unchecked() -> None:
    """The check of who waits as long as it takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """The bounds of a connection. `deadline`: of the monotonic clock. `reply_bytes_max`: of one row or command.

    `check` is called each second, and ends the connection by an exception.
    """

    deadline: float
    reply_bytes_max: int
    check: Callable[[], None] = _unchecked
