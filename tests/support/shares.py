"""Tests of which CI runs a share, another one for each commit: `make test-shares` runs all of them."""

from __future__ import annotations

import random
from typing import Final

import pytest

VARIABLE: Final = "SHARES"


def share(of: int) -> pytest.MarkDecorator:
    """The mark of a test of which CI runs every `of`-th case. A test of one case runs for every `of`-th commit."""
    return pytest.mark.share(of)


def is_chosen(name: str, number: int, of: int, seed: str) -> bool:
    """Whether the case with this number is one of the share."""
    return number % of == random.Random(f"{seed} {name}").randrange(of)
