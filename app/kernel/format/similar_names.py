"""Names that were probably meant by one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_NAMES_MAX: Final = 5
# Longer ones take long to compare.
_CHARACTERS_MAX: Final = 255
_SLIPS_MAX: Final = 2
_COMPARED_MAX: Final = 200


def similar_names(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that differ only in case, or else only slightly, the closest first.

    It takes up to 10 ms, for thousands of names: once for a request, not for each of its rows.
    """
    names = list(dict.fromkeys(candidates))
    same = [other for other in names if other.casefold() == name.casefold()]
    if same or len(name) > _CHARACTERS_MAX:
        return same
    return get_close_matches(name, names, n=_NAMES_MAX)


def mistyped(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that differs only in case, or else in one place by two characters at most; None for none.

    Compares with the first 200 candidates, so that it can be called for every row of a body.
    """
    names = list(candidates)
    caseless = name.casefold()
    for other in names:
        if other.casefold() == caseless:
            return other
    return next((other for other in names[:_COMPARED_MAX] if _differ_in_one_place(name, other)), None)


def _differ_in_one_place(one: str, other: str) -> bool:
    longest = max(len(one), len(other))
    slips_max = min(_SLIPS_MAX, longest // 2)
    if abs(len(one) - len(other)) > slips_max:
        return False
    return longest - _equal_at_start(one, other) - _equal_at_start(one[::-1], other[::-1]) <= slips_max


def _equal_at_start(one: str, other: str) -> int:
    """How many characters the two start with alike."""
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count
