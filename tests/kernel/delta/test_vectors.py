"""Deletion vectors in actions."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from app.kernel.delta.vectors import inline_vector, z85


def test_text_is_that_of_the_specification_of_z85() -> None:
    assert z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"


def test_bytes_have_to_fill_words() -> None:
    with pytest.raises(ValueError, match="multiple of 4"):
        z85(b"abc")


def test_vector_is_that_of_the_specification_of_delta() -> None:
    positions = BitMap([3, 4, 7, 11, 18, 29])
    vector = inline_vector(positions.serialize(), len(positions))
    assert vector == {
        "storageType": "i",
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 44,
        "cardinality": 6,
    }


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_size_is_that_of_the_bytes_before_they_are_padded(count: int) -> None:
    bitmap = bytes(range(count))
    vector = inline_vector(bitmap, 1)
    assert vector["sizeInBytes"] == 16 + count
    assert len(vector["pathOrInlineDv"]) == 25
