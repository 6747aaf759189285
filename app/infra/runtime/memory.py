"""Settings of the C library's memory allocator in processes that serve large pages."""

from __future__ import annotations

import ctypes
from typing import Final

_TRIM_THRESHOLD: Final = -1
_TOP_PAD: Final = -2
_MMAP_THRESHOLD: Final = -3
_MEBIBYTE: Final = 1024 * 1024


def keep_freed_memory() -> None:
    """Keeps up to 128 MiB of freed memory for the next page instead of returning it to the kernel each time.

    A page of changes is created in buffers of several megabytes, which the C library would map and unmap for each page:
    this took the kernel two fifths of the time to serve a page as JSON (`make bench-feed`). Does nothing if the C
    library is not GNU's.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(_MMAP_THRESHOLD, 32 * _MEBIBYTE)
    mallopt(_TRIM_THRESHOLD, 128 * _MEBIBYTE)
    mallopt(_TOP_PAD, 16 * _MEBIBYTE)
