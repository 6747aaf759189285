"""The order of many wide numbers.

Numpy sorts numbers of two bytes by counting them, many times faster than it compares wider ones. So rows are ordered by
the third and then by the fourth part of their numbers, and only those that share both parts are compared.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

_BITS: Final = 64
# Fewer numbers are compared as fast.
_COUNTED_MIN: Final = 4_096


def ascending_order(
    numbers: npt.NDArray[np.uint64] | npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """The places of the numbers in ascending order: int64, shape (numbers,). Equal numbers are in any order."""
    if len(numbers) < _COUNTED_MIN:
        return np.argsort(numbers)
    if (numbers[1:] >= numbers[:-1]).all():
        return np.arange(len(numbers))
    # Differences of signed numbers wrap around to what they are as unsigned ones.
    above = (numbers - numbers.min()).view(np.uint64)
    # The parts that are counted begin with the first bit in which the numbers differ.
    above <<= np.uint64(_BITS - max(int(above.max()).bit_length(), 1))
    order = np.argsort(_part(above, 2), kind="stable")
    order = order[np.argsort(_part(above, 3)[order], kind="stable")]
    ties = repeated(above[order] >> np.uint64(32))
    places = order[ties]
    # Numbers with smaller parts stay in front of those with larger ones.
    order[ties] = places[np.argsort(above[places])]
    return order


def repeated(
    ascending: npt.NDArray[np.uint64] | npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Whether each of the numbers, which are in order, equals one beside it: bool, shape (numbers,)."""
    repeats: npt.NDArray[np.bool_] = np.zeros(len(ascending), dtype=np.bool_)
    follows = ascending[1:] == ascending[:-1]
    repeats[1:] = follows
    repeats[:-1] |= follows
    return repeats


def _part(numbers: npt.NDArray[np.uint64], part: int) -> npt.NDArray[np.uint16]:
    """Bits 16 * part to 16 * part + 15 of each number."""
    return (numbers >> np.uint64(16 * part)).astype(np.uint16)
