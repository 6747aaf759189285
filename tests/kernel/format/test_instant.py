"""The life of an instant, as a table."""

from __future__ import annotations

import pytest

from app.kernel.format.instant import (
    IllegalTransition,
    InstantEvent,
    InstantState,
    RowCounts,
    next_state,
    states_before,
)

# state × event → state; a dash is illegal
CASES = """
state        start     publish    abandon
requested    inflight  -          rolled_back
inflight     inflight  completed  rolled_back
completed    -         -          -
rolled_back  -         -          -
"""
HEADER, *LINES = [line.split() for line in CASES.strip().splitlines()]
TRANSITIONS = [
    (line[0], event, after) for line in LINES for event, after in zip(HEADER[1:], line[1:], strict=True)
]


@pytest.mark.parametrize(("state", "event", "after"), TRANSITIONS)
def test_instant_events_make_the_legal_transitions(state: str, event: str, after: str) -> None:
    if after == "-":
        with pytest.raises(IllegalTransition):
            next_state(InstantState(state), InstantEvent(event))
    else:
        assert next_state(InstantState(state), InstantEvent(event)) is InstantState(after)
    assert (InstantState(state) in states_before(InstantEvent(event))) == (after != "-")


def test_row_counts_add_up() -> None:
    assert RowCounts(inserted=1, updated=2) + RowCounts(updated=3, unchanged=4) == RowCounts(
        inserted=1, updated=5, unchanged=4
    )
