"""The memory of the decode tasks of a machine, in processes as tasks have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.infra.errors import Unavailable
from app.infra.files.slices.memory_budget import MemoryBudget
from tests.support.waiting import until
from workers.engine.decode.decode_memory import LARGE_BYTES, DecodeMemory

_ALLOCATING = """
import sys
from app.infra.files.slices.memory_budget import MemoryBudget
from app.kernel.format.errors import MalformedBody
from workers.engine.decode.decode_memory import LARGE_BYTES, DecodeMemory

memory = DecodeMemory(MemoryBudget(bytes_max=1, scratch=__import__("pathlib").Path(sys.argv[1])))
for size_bytes in (LARGE_BYTES, LARGE_BYTES + 1):
    for allocated_mib in (900, 1_500, 2_200):
        try:
            with memory.limited(), memory.holding(size_bytes):
                bytearray(allocated_mib << 20)
            print("decoded")
        except MalformedBody as error:
            print(error.detail)
bytearray(2_200 << 20)
print("no limit is left")
"""
_HOLDING = """
import sys, time
from pathlib import Path
from app.infra.files.slices.memory_budget import MemoryBudget
from workers.engine.decode.decode_memory import LARGE_BYTES, DecodeMemory

with DecodeMemory(MemoryBudget(bytes_max=1, scratch=Path(sys.argv[1]))).holding(LARGE_BYTES + 1):
    print("held", flush=True)
    time.sleep(600)
"""


def test_task_has_a_limit_and_a_higher_one_for_a_large_part(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _ALLOCATING, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    refused = (
        "decoding the input takes more memory than a task has: send smaller row groups or record batches"
    )
    ends = ["decoded", refused, refused, "decoded", "decoded", refused, "no limit is left"]
    assert ran.stdout.splitlines() == ends


def test_one_task_at_a_time_decodes_a_large_part(tmp_path: Path) -> None:
    budget = MemoryBudget(bytes_max=1, scratch=tmp_path / "scratch")
    first, second = DecodeMemory(budget), DecodeMemory(budget, wait_seconds=0.2)
    with first.holding(LARGE_BYTES + 1):
        with second.holding(LARGE_BYTES):
            pass
        with (
            pytest.raises(Unavailable, match="other inputs take the memory"),
            second.holding(LARGE_BYTES + 1),
        ):
            pass
    with second.holding(LARGE_BYTES + 1):
        pass


def test_task_that_is_killed_keeps_no_other_one_waiting(tmp_path: Path) -> None:
    memory = DecodeMemory(MemoryBudget(bytes_max=1, scratch=tmp_path), wait_seconds=0)
    command = [sys.executable, "-c", _HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(Unavailable), memory.holding(LARGE_BYTES + 1):
            pass
        other.kill()

    def free() -> bool:
        try:
            with memory.holding(LARGE_BYTES + 1):
                return True
        except Unavailable:
            return False

    until(free, "the lock of a killed process")
