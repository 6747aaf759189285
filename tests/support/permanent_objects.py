"""A plugin of pytest: the garbage collector leaves out what was loaded before the first test.

The modules and the 18,000 tests of a whole run are a million objects, which live until its end. To look through them
was a third of the time for collecting the tests, and a twentieth of the time of the tests.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects the tests without looking for garbage, then looks once."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
