"""Texts as numbers in their order."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_PREFIX_BYTES: Final = 8
# By the length of a text, the bits of a word that belong to it.
_MASKS: Final = np.array(
    [2**64 - 2 ** (64 - 8 * length) for length in range(_PREFIX_BYTES + 1)], dtype=np.uint64
)


def first_bytes(values: pa.Array) -> npt.NDArray[np.uint64]:
    """The first eight bytes of texts as big-endian numbers; shorter texts end with zeros."""
    _, ends, data = values.buffers()
    offsets = np.frombuffer(ends, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(data or b"", dtype=np.uint8)[: offsets[-1]]
    # Every position has a word behind it, whatever its alignment.
    buffer = np.append(content, np.zeros(_PREFIX_BYTES, dtype=np.uint8))
    words = np.ndarray((len(content) + 1,), dtype=">u8", buffer=buffer, strides=(1,))
    lengths = np.minimum(np.diff(offsets), _PREFIX_BYTES)
    prefixes: npt.NDArray[np.uint64] = words[offsets[:-1]].astype(np.uint64) & _MASKS[lengths]
    return prefixes
