"""The seed of random shares: each commit runs others, and all processes of a run the same."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


@cache
def commit_seed() -> str:
    """The id of the checked-out commit."""
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    ).stdout.strip()
