"""The memory of the decode tasks of a machine: a limit for each, and a higher one for one task at a time.

So all of them together take at most what each may take, and once the difference.
"""

from __future__ import annotations

import fcntl
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from app.infra.errors import Unavailable
from app.infra.files.slices.memory_budget import MemoryBudget
from app.kernel.format.errors import MalformedBody

MEMORY_BYTES: Final = 1024 * 1024 * 1024
"""What a task may allocate while it decodes."""
LARGE_BYTES: Final = 256 * 1024 * 1024
"""Parts that need more are decoded by one task at a time."""
LARGE_MEMORY_BYTES: Final = 2 * 1024 * 1024 * 1024
"""What that task may allocate."""
# The folder of the system is that of all users.
_LOCK: Final = f"headwater-large-part-{os.getuid()}.lock"
_WAIT_SECONDS_MAX: Final = 600.0
_POLL_SECONDS: Final = 0.05


class DecodeMemory:
    """What one task may allocate while it decodes.

    `budget`: of the task. The tasks of a machine have the same scratch folder.
    """

    def __init__(self, budget: MemoryBudget, *, wait_seconds: float = _WAIT_SECONDS_MAX) -> None:
        self._folder = budget.scratch or Path(tempfile.gettempdir())
        self._wait_seconds = wait_seconds
        self._limit: _DataLimit | None = None

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Limits the memory that hostile input can make the decoders allocate. Raises MalformedBody beyond it."""
        self._limit = _DataLimit()
        self._set(MEMORY_BYTES)
        try:
            yield
        except (MemoryError, pa.ArrowMemoryError) as error:
            raise MalformedBody(
                "decoding the input takes more memory than a task has: send smaller row groups or record batches"
            ) from error
        finally:
            self._limit.end()
            self._limit = None

    @contextmanager
    def holding(self, size_bytes: int) -> Iterator[None]:
        """Allows the task more memory if it needs it, once no other one of the machine has more.

        Raises Unavailable if that takes longer than ten minutes.
        """
        if size_bytes <= LARGE_BYTES:
            yield
            return
        with self._turn():
            self._set(LARGE_MEMORY_BYTES)
            try:
                yield
            finally:
                self._set(MEMORY_BYTES)

    def _set(self, size_bytes: int) -> None:
        # The reader of an input that was refused may end later than its task.
        if self._limit is not None:
            self._limit.set(size_bytes)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + self._wait_seconds
        with (self._folder / _LOCK).open("ab") as lock:
            while True:
                try:
                    # It ends with its process, however that ends.
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise Unavailable("other inputs take the memory that this one needs") from None
                    time.sleep(_POLL_SECONDS)
            yield


class _DataLimit:
    """The limit of what this process allocates, beyond what it has."""

    def __init__(self) -> None:
        self._before = resource.getrlimit(resource.RLIMIT_DATA)
        self._allocated_bytes = _data_bytes()

    def set(self, size_bytes: int) -> None:
        hard = self._before[1]
        limit = self._allocated_bytes + size_bytes
        resource.setrlimit(
            resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
        )

    def end(self) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, self._before)


def _data_bytes() -> int:
    with Path("/proc/self/status").open(encoding="ascii") as status:
        for line in status:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0
