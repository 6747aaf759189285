"""A bucket that is larger than the memory of its process still merges: rows are spilled, and merged part by part."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.spill_process import HISTORIES, TEXT_BYTES
from tests.support.commit_seed import commit_seed
from tests.support.shares import share

ROOT = Path(__file__).parents[2]
ROWS = 450_000
HEAP_BYTES = 180_000_000
AMPLE = 2**30


def _merged(folder: Path, history: str, *, memory_bytes: int) -> subprocess.CompletedProcess[str]:
    values = (str(folder), history, str(ROWS), str(memory_bytes), str(HEAP_BYTES))
    command = [sys.executable, "-m", "tests.conformance.spill_process", *values]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


# One of them in CI, another one for each commit: each takes a process that is short of memory.
CHOSEN = (
    list(HISTORIES)
    if "CONFORMANCE" in os.environ
    else random.Random(commit_seed()).sample(list(HISTORIES), 1)
)


@share(3)
@pytest.mark.parametrize("history", CHOSEN)
def test_bucket_larger_than_memory_is_merged(tmp_path: Path, history: str) -> None:
    # The limit is on the process's own memory: rows of either side alone have more bytes.
    assert ROWS * (TEXT_BYTES + 16) > HEAP_BYTES
    ran = _merged(tmp_path, history, memory_bytes=HEAP_BYTES // 32)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["rows"] == ROWS
    assert found["rounds"] == ROWS
    assert found["keys"] == ROWS * (ROWS - 1) // 2
    assert list((tmp_path / "scratch").iterdir()) == []


def test_merge_without_spilling_exceeds_the_limit(tmp_path: Path) -> None:
    ran = _merged(tmp_path, next(iter(HISTORIES)), memory_bytes=AMPLE)
    assert ran.returncode != 0
    assert "MemoryError" in ran.stderr
