"""XXH64 (seed 0) of many keys at once.

One call of the library per key spends four fifths of its time on the creation of a Python object. Keys of one length
need the same steps, so numpy executes each step for a block of keys. The values equal the library's; a test checks
every length.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

Hashes = npt.NDArray[np.uint64]
_Bytes = npt.NDArray[np.uint8]

_PRIME_1: Final = np.uint64(0x9E3779B185EBCA87)
_PRIME_2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3: Final = np.uint64(0x165667B19E3779F9)
_PRIME_4: Final = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5: Final = np.uint64(0x27D4EB2F165667C5)
# The initial values of the four accumulators of a long key, for seed 0.
_STARTS: Final = np.array(
    [(int(_PRIME_1) + int(_PRIME_2)) % 2**64, int(_PRIME_2), 0, 2**64 - int(_PRIME_1)], dtype=np.uint64
)
_STRIPE_BYTES: Final = 32

# The arrays of a block fit the processor's second-level cache.
_BLOCK_KEYS: Final = 16 * 1024
# With fewer keys of one length, or with longer keys, the library is at least as fast.
_VECTOR_KEYS_MIN: Final = 2048
_VECTOR_BYTES_MAX: Final = 128


def hash_keys(keys: pa.ChunkedArray) -> Hashes:
    """XXH64 with seed 0 of every value of a `large_binary` column without nulls: uint64, shape (rows,)."""
    parts = [_hash_chunk(chunk) for chunk in keys.chunks]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _hash_chunk(keys: pa.LargeBinaryArray) -> Hashes:
    if len(keys) < _VECTOR_KEYS_MIN:
        return _one_by_one(keys)
    # All keys that are too long for a vector form one group. Numpy sorts 8-bit numbers fastest.
    lengths = np.minimum(np.diff(_offsets(keys)), _VECTOR_BYTES_MAX + 1).astype(np.uint8)
    if lengths.min() == lengths.max():
        return _hash_group(keys, int(lengths[0]))
    # Concatenated, keys of one length are a matrix of bytes.
    order = np.argsort(lengths, kind="stable")
    keys_by_length = keys.take(pa.array(order))
    hashes = np.empty(len(keys), dtype=np.uint64)
    start = 0
    for length, count in enumerate(np.bincount(lengths)):
        if count:
            hashes[order[start : start + count]] = _hash_group(keys_by_length.slice(start, count), length)
            start += count
    return hashes


def _hash_group(keys: pa.LargeBinaryArray, length: int) -> Hashes:
    """`length`: the length of each key, or one more than `_VECTOR_BYTES_MAX` if they are longer."""
    if len(keys) < _VECTOR_KEYS_MIN or not 0 < length <= _VECTOR_BYTES_MAX:
        return _one_by_one(keys)
    first = int(_offsets(keys)[0])
    values = np.frombuffer(keys.buffers()[2], dtype=np.uint8, offset=first, count=len(keys) * length)
    matrix = values.reshape(len(keys), length)
    blocks = range(0, len(keys), _BLOCK_KEYS)
    return np.concatenate([_hash_block(matrix[start : start + _BLOCK_KEYS]) for start in blocks])


def _one_by_one(keys: pa.LargeBinaryArray) -> Hashes:
    return np.fromiter(map(xxhash.xxh64_intdigest, keys.to_pylist()), dtype=np.uint64, count=len(keys))


def _offsets(keys: pa.LargeBinaryArray) -> npt.NDArray[np.int64]:
    """Where each key starts among the array's bytes, and where the last one ends: shape (keys + 1,)."""
    return np.frombuffer(keys.buffers()[1], dtype=np.int64)[keys.offset : keys.offset + len(keys) + 1]


def _hash_block(keys: _Bytes) -> Hashes:
    """XXH64 of the rows of a matrix of bytes, as in its specification."""
    count, length = keys.shape
    stripes_end = length - length % _STRIPE_BYTES
    if stripes_end:
        lanes = [np.full(count, start) for start in _STARTS]
        for at in range(0, stripes_end, _STRIPE_BYTES):
            lanes = [_round(lane, _words(keys, at + 8 * number, "<u8")) for number, lane in enumerate(lanes)]
        hashes = _converge(lanes)
    else:
        hashes = np.full(count, _PRIME_5)
    hashes += np.uint64(length)
    for at in range(stripes_end, length - 7, 8):
        hashes ^= _round(np.uint64(0), _words(keys, at, "<u8"))
        hashes = _rotated(hashes, 27) * _PRIME_1 + _PRIME_4
    if length % 8 >= 4:
        hashes ^= _words(keys, length - length % 8, "<u4") * _PRIME_1
        hashes = _rotated(hashes, 23) * _PRIME_2 + _PRIME_3
    for at in range(length - length % 4, length):
        hashes ^= keys[:, at] * _PRIME_5
        hashes = _rotated(hashes, 11) * _PRIME_1
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _PRIME_2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _PRIME_3
    return hashes ^ (hashes >> np.uint64(32))


def _words(keys: _Bytes, at: int, kind: str) -> Hashes:
    """The little-endian numbers at byte `at` of every key."""
    words: npt.NDArray[np.unsignedinteger] = np.ndarray(
        (len(keys),), dtype=kind, buffer=keys, offset=at, strides=(keys.shape[1],)
    )
    return words.astype(np.uint64)


def _round(lane: Hashes | np.uint64, words: Hashes) -> Hashes:
    return _rotated(lane + words * _PRIME_2, 31) * _PRIME_1


def _converge(lanes: list[Hashes]) -> Hashes:
    rotations = [_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)]
    hashes = rotations[0] + rotations[1] + rotations[2] + rotations[3]
    for lane in lanes:
        hashes = (hashes ^ _round(np.uint64(0), lane)) * _PRIME_1 + _PRIME_4
    return hashes


def _rotated(values: Hashes, by: int) -> Hashes:
    return (values << np.uint64(by)) | (values >> np.uint64(64 - by))
