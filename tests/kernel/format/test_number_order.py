"""The order of many wide numbers is that of numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from app.kernel.format.index.number_order import ascending_order

COUNT = 20_000
Numbers = npt.NDArray[np.uint64] | npt.NDArray[np.int64]
LEAST, MOST = -(2**63), 2**63 - 1

RANDOM = np.random.default_rng(1)
CASES: dict[str, Callable[[], Numbers]] = {
    "hashes": lambda: RANDOM.integers(0, 2**64, COUNT, dtype=np.uint64),
    "a few values of 64 bits": lambda: RANDOM.choice(RANDOM.integers(0, 2**64, 9, dtype=np.uint64), COUNT),
    "signed": lambda: RANDOM.integers(LEAST, MOST, COUNT),
    "the least and the greatest": lambda: np.append(RANDOM.integers(-5, 5, COUNT), [MOST, LEAST]),
    "small": lambda: RANDOM.integers(-3, 4, COUNT),
    "one value": lambda: np.full(COUNT, 7, dtype=np.uint64),
    "one value but one": lambda: np.append(np.full(COUNT, MOST), LEAST),
    "ascending": lambda: np.arange(COUNT),
    "descending": lambda: np.arange(COUNT)[::-1],
    "one prefix": lambda: RANDOM.integers(0, 2**16, COUNT, dtype=np.uint64) + np.uint64(2**63),
    "that differ in their last bits only": lambda: np.append(
        RANDOM.integers(0, 2**20, COUNT, dtype=np.uint64), np.uint64(2**64 - 1)
    ),
    "few": lambda: RANDOM.integers(LEAST, MOST, 50),
    "none": lambda: np.zeros(0, dtype=np.uint64),
}


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_in_ascending_order(case: str) -> None:
    numbers = CASES[case]()
    before = numbers.copy()
    order = ascending_order(numbers)
    assert order.dtype == np.int64
    assert (np.sort(order) == np.arange(len(numbers))).all()
    assert (numbers[order] == np.sort(before)).all()
    assert (numbers == before).all()


@pytest.mark.parametrize("bits", range(1, 65))
def test_numbers_of_every_width_are_in_ascending_order(bits: int) -> None:
    numbers = RANDOM.integers(0, 2**bits - 1, COUNT, dtype=np.uint64, endpoint=True)
    assert (numbers[ascending_order(numbers)] == np.sort(numbers)).all()
