"""Every way to write, on every kind of dataset that takes it, on Spark, against the model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.histories import Combination, combinations

pytestmark = [
    pytest.mark.spark,
    # PySpark says so of every pandas from 3 on; no task here uses pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.mark.parametrize("combination", combinations(), ids=lambda combination: combination.name)
def test_a_short_history_is_that_of_the_model(
    combination: Combination, fault_of: Callable[[Combination], Exception | None]
) -> None:
    fault = fault_of(combination)
    if fault is not None:
        raise fault
