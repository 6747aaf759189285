"""A plugin of pytest: temporary files are in memory where the machine has enough of it.

Tests write hundreds of thousands of small files: of tables, and of Postgres, which has 650 for each database. The files
of tests that passed are removed as these end.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")
# Several times what a whole run uses at once.
_FREE_BYTES_MIN: Final = 12 * 2**30


def pytest_configure() -> None:
    """Sets `TMPDIR` for this process and those that it starts, unless it is set. A container's folder is too small."""
    if "TMPDIR" not in os.environ and _has_room():
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


def _has_room() -> bool:
    if not os.access(_MEMORY, os.W_OK):
        return False
    return min(shutil.disk_usage(_MEMORY).free, _available_bytes()) >= _FREE_BYTES_MIN


def _available_bytes() -> int:
    """Memory that programs can take without swapping; 0 where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    [line] = [line for line in lines if line.startswith("MemAvailable:")]
    return int(line.split()[1]) * 1024
