"""Random histories of several clients, replayed against the reference model.

`HISTORIES=50 pytest tests/flows/test_histories.py` runs more of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.support.concurrent_history import check_history, run_clients, settings_of
from tests.support.shares import share
from tests.support.table import Table

pytestmark = pytest.mark.stack

HISTORIES = int(os.environ.get("HISTORIES", "2"))


@share(3)
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_concurrent_history_equals_a_serial_one(new_table: Callable[..., Table], seed: int) -> None:
    settings = settings_of(seed)
    table = new_table(**settings)
    writes = run_clients(table, seed)
    check_history(table, writes, settings.get("ordering_field"))
