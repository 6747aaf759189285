"""CI runs shares of some tests, others for each commit, and all cases run in time."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tests.support.shares import is_chosen

_COMMITS = [f"{number:040x}" for number in range(400)]


def test_share_has_every_nth_case() -> None:
    for seed in _COMMITS[:20]:
        chosen = [number for number in range(12) if is_chosen("tests/a.py", number, 4, seed)]
        assert len(chosen) == 3
        assert {later - earlier for earlier, later in pairwise(chosen)} == {4}


def test_every_case_is_in_the_share_of_some_commits() -> None:
    counts = Counter(
        number for seed in _COMMITS for number in range(4) if is_chosen("tests/a.py", number, 4, seed)
    )
    assert set(counts) == {0, 1, 2, 3}
    assert min(counts.values()) > len(_COMMITS) / 4 / 2


def test_shares_of_other_tests_are_independent() -> None:
    both = sum(
        is_chosen("tests/a.py", 0, 2, seed) == is_chosen("tests/b.py", 0, 2, seed) for seed in _COMMITS
    )
    assert 0.3 < both / len(_COMMITS) < 0.7
