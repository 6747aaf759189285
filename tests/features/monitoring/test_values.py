"""Values of monitoring, in words."""

from __future__ import annotations

import pytest

from app.features.monitoring.values import Amount


@pytest.mark.parametrize(
    ("value", "words"),
    [(1, "1 record is"), (1.4, "1 record is"), (0, "0 records are"), (1204, "1,204 records are")],
)
def test_an_amount_of_one_has_the_singular(value: float, words: str) -> None:
    amount = Amount(value)
    assert f"{amount:record is|records are}" == words
    assert f"{amount:,.1f}" == f"{value:,.1f}"
