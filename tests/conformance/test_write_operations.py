"""Every way to write, on every kind of dataset that takes it, on Spark, against the model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.histories import Combination, combinations
from tests.support.shares import share

pytestmark = [
    pytest.mark.spark,
]


@share(3)
@pytest.mark.parametrize("combination", combinations(), ids=lambda combination: combination.name)
def test_short_history_equals_the_model(
    combination: Combination, fault_of: Callable[[Combination], Exception | None]
) -> None:
    fault = fault_of(combination)
    if fault is not None:
        raise fault
