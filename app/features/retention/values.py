"""The beginning of a dataset's history, and the values of a clean."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec

from app.kernel.format.policies import HistoryPolicy

# Instants in one file, at least.
ARCHIVED_MIN: Final = 500


class HistoryStart(msgspec.Struct, frozen=True, kw_only=True):
    """Where a history begins: versions from `earliest_version` on are kept. `expired_versions`: how many expired."""

    earliest_version: int
    expired_versions: int


class HistoryExpiry(msgspec.Struct, frozen=True, kw_only=True):
    """What a history requires: a clean now (`due`), and when its earliest version expires without another commit.

    `next_at` is None if no version expires by its age before the next commit.
    """

    due: bool
    next_at: datetime | None = None


class ExpiredFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files that no retained version uses any more, the last of them removed by version `until`. `bytes`: the size of
    those of which no other row is used.
    """

    files: int
    bytes: int
    until: int


class ReferencedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that rows refer to, as they recorded it."""

    path: str
    size_bytes: int
    checksum: str


class FileReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a comparison of the storage with the database: how much was compared, and what is wrong."""

    datasets: int
    files: int
    faults: int


class ReapReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a reap has deleted."""

    files: Annotated[int, msgspec.Meta(examples=[128])]
    """The number of files."""
    complete: bool
    """Whether it is through with all deleted datasets; otherwise request another one."""


def beginning_of(policy: HistoryPolicy, *, head: int, latest_then: int) -> int:
    """The first version that the policy keeps. `latest_then`: the latest one `seconds` ago.

    A version is kept if it is one of the last `versions`, or was the latest at any time in the last `seconds`.
    """
    beginnings = []
    if policy.versions is not None:
        beginnings.append(head - policy.versions + 1)
    if policy.seconds is not None:
        beginnings.append(latest_then)
    return max(0, min(beginnings, default=0))
