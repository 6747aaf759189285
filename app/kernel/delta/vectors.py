"""Deletion vectors that an action contains: the positions of deleted rows, as text.

The text is Z85 (32/Z85 of ZeroMQ's specifications) of the bitmap in Delta's form: a magic number, the number of 32-bit
bitmaps, and each of them behind its key.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

INLINE_BYTES_MAX: Final = 1024 * 1024
"""The largest bitmap that an action should contain."""
_MAGIC: Final = (1_681_511_377).to_bytes(4, "little")
# One bitmap of 32-bit positions, whose key, the upper half of its positions, is 0.
_HEADER: Final = _MAGIC + (1).to_bytes(8, "little") + (0).to_bytes(4, "little")
_ALPHABET: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_LETTERS: Final = np.frombuffer(_ALPHABET, dtype=np.uint8)
_POWERS: Final = np.array([85**4, 85**3, 85**2, 85, 1], dtype=np.uint32)
_WORD_BYTES: Final = 4


def z85(content: bytes) -> str:
    """Bytes, whose number is a multiple of 4, as text of 5 characters for each 4. Raises ValueError."""
    if len(content) % _WORD_BYTES:
        raise ValueError(f"expected a multiple of {_WORD_BYTES} bytes, got {len(content)}")
    words = np.frombuffer(content, dtype=">u4").astype(np.uint32)
    digits = words[:, None] // _POWERS % np.uint32(len(_ALPHABET))
    text: bytes = _LETTERS[digits].tobytes()
    return text.decode("ascii")


def inline_vector(bitmap: bytes, cardinality: int) -> dict[str, Any]:
    """The descriptor of a deletion vector with its content.

    `bitmap`: a Roaring bitmap of 32-bit positions in its portable form. `cardinality`: the number of its positions.
    """
    content = _HEADER + bitmap
    padding = bytes(-len(content) % _WORD_BYTES)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(content + padding),
        "sizeInBytes": len(content),
        "cardinality": cardinality,
    }
