"""Key indexes of one data file: the positions of a key, or whether the key may be in the file.

Both kinds contain hashes of keys (`hash_keys`), never the keys: a caller that finds a row by its hash must compare
the key itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.kernel.format.index.key_hash import Hashes, hash_keys
from app.kernel.format.index.number_order import ascending_order

Int64Array = npt.NDArray[np.int64]

ROWS_MAX: Final = 2**32

# A split block bloom filter, as in Parquet: a key sets one bit in each of the eight words of one block, so that a
# lookup reads one cache line. The false positive rate is one in a hundred.
BLOOM_BITS_PER_KEY: Final = 10.5
_BLOCK_WORDS: Final = 8
_WORD_BITS: Final = 32
_SALTS: Final = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31],
    dtype=np.uint32,
)
# The number of keys processed at once: their words and masks fit the processor's cache.
_STEP_KEYS: Final = 16 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyIndex:
    """The key hashes of a file in ascending order, and the position of the row of each hash.

    `hashes`: uint64, `positions`: uint32, both of shape (rows,).
    """

    hashes: Hashes
    positions: npt.NDArray[np.uint32]

    @classmethod
    def build(cls, keys: pa.ChunkedArray) -> KeyIndex:
        """The index of a file whose rows have these canonical keys (`large_binary`, no nulls), in file order."""
        return cls.of_hashes(hash_keys(keys))

    @classmethod
    def of_hashes(cls, hashes: Hashes) -> KeyIndex:
        """The index of a file whose rows have these key hashes, in file order."""
        if len(hashes) > ROWS_MAX:
            raise ValueError(f"a data file has at most {ROWS_MAX} rows, not {len(hashes)}")
        order = ascending_order(hashes)
        return cls(hashes=hashes[order], positions=order.astype(np.uint32))

    def probe(self, hashes: Hashes) -> tuple[Int64Array, Int64Array]:
        """Every pair (number of a requested hash, position of a row with that hash), in no particular order.

        Rows of different keys may share a hash, and a hash may be requested more than once.
        """
        # In ascending order, adjacent hashes touch the same part of the index.
        order = ascending_order(hashes)
        ascending = hashes[order]
        at = np.searchsorted(self.hashes, ascending)
        incoming, positions = [], []
        # Each round takes one more row of every hash that has another one; nearly always there is only one.
        while len(at):
            inside = at < len(self.hashes)
            hits = np.flatnonzero(inside)[self.hashes[at[inside]] == ascending[inside]]
            order, ascending, at = order[hits], ascending[hits], at[hits]
            incoming.append(order)
            positions.append(self.positions[at])
            at = at + 1
        return _joined(incoming), _joined(positions)


@dataclass(frozen=True, kw_only=True, slots=True)
class BloomFilter:
    """A split block bloom filter over key hashes. `words`: uint32, shape (blocks, 8)."""

    words: npt.NDArray[np.uint32]

    @classmethod
    def of_hashes(cls, hashes: Hashes) -> BloomFilter:
        """The filter of a file with these key hashes, with `BLOOM_BITS_PER_KEY`."""
        blocks = max(1, math.ceil(len(hashes) * BLOOM_BITS_PER_KEY / (_BLOCK_WORDS * _WORD_BITS)))
        # Setting a byte per bit is many times faster than setting bits. The smallest bit of a word is its first.
        bits = np.zeros((blocks * _BLOCK_WORDS, _WORD_BITS), dtype=np.bool_)
        for start in range(0, len(hashes), _STEP_KEYS):
            step = hashes[start : start + _STEP_KEYS]
            words = _blocks(step, blocks)[:, None] * _BLOCK_WORDS + np.arange(_BLOCK_WORDS)
            bits[words, _bit_numbers(step)] = True
        filter_words = np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)
        return cls(words=filter_words.reshape(blocks, _BLOCK_WORDS))

    def may_contain(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """False where the file has no row with that hash: bool, shape (hashes,)."""
        hits = np.empty(len(hashes), dtype=np.bool_)
        for start in range(0, len(hashes), _STEP_KEYS):
            step = hashes[start : start + _STEP_KEYS]
            words = self.words[_blocks(step, len(self.words))]
            bits = (words >> _bit_numbers(step)) & np.uint32(1)
            hits[start : start + _STEP_KEYS] = bits.all(axis=1)
        return hits


def _blocks(hashes: Hashes, count: int) -> Int64Array:
    """The upper half of a hash, scaled to the number of blocks."""
    return (((hashes >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)).astype(np.int64)


def _bit_numbers(hashes: Hashes) -> npt.NDArray[np.uint32]:
    """The bit that is set in each of the eight words: the top five bits of the lower half times the word's salt."""
    low = hashes.astype(np.uint32)[:, None]
    bits: npt.NDArray[np.uint32] = (low * _SALTS) >> np.uint32(27)
    return bits


def _joined(parts: list[npt.NDArray[np.integer]]) -> Int64Array:
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)
