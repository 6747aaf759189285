"""Tests of which CI runs a share, another one for each commit: `make test-shares` runs all of them."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable
from typing import Final

import pytest

from tests.support.commit_seed import commit_seed

VARIABLE: Final = "SHARES"


def share(of: int) -> pytest.MarkDecorator:
    """The mark of a test of which CI runs every `of`-th case. A test of one case runs for every `of`-th commit."""
    return pytest.mark.share(of)


def choose(items: Iterable[pytest.Item]) -> None:
    """Skips the cases that are not in the share of this commit, unless the variable is `long`."""
    if os.environ.get(VARIABLE) == "long":
        return
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("share")
        if mark is None:
            continue
        test, _, case = item.nodeid.partition("[")
        # Tests of a module have the same cases, since these often share a fixture.
        name = test.partition("::")[0] if case else test
        if not is_chosen(name, seen[test], mark.args[0], commit_seed()):
            item.add_marker(
                pytest.mark.skip(reason="not in the share of this commit: `make test-shares` runs all")
            )
        seen[test] += 1


def is_chosen(name: str, number: int, of: int, seed: str) -> bool:
    """Whether the case with this number is one of the share."""
    return number % of == random.Random(f"{seed} {name}").randrange(of)
