"""The memory of a task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryBudget:
    """The memory that a task may use for rows, and the folder for rows that do not fit."""

    bytes_max: int
    scratch: Path | None = None
