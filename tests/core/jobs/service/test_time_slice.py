"""The time slice of an attempt: what counts, and what its end does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest

from app.core.jobs.errors import EngineStopped
from app.core.jobs.service.time_slice import SliceUsed, TimeSlice


def sliced(
    seconds: float | None, waits: Callable[[], bool] = lambda: False
) -> tuple[TimeSlice, threading.Event]:
    """A slice in steps of a millisecond, and what it sets when it is used up."""
    stopped = threading.Event()
    return TimeSlice(seconds, stopped.set, waits=waits, step_seconds=0.001), stopped


def test_block_that_uses_up_its_slice_is_stopped() -> None:
    time_slice, stopped = sliced(0.01)

    def work() -> None:
        with time_slice:
            assert stopped.wait(10)
            raise EngineStopped("tag")

    with pytest.raises(SliceUsed):
        work()


def test_block_that_ends_by_itself_keeps_its_result() -> None:
    time_slice, stopped = sliced(0.01)
    with time_slice:
        assert stopped.wait(10)


def test_other_stops_and_errors_are_not_those_of_the_slice() -> None:
    for error in (EngineStopped("tag"), ValueError("x")):
        time_slice, stopped = sliced(3_600)
        with pytest.raises(type(error)), time_slice:
            raise error
        assert not stopped.is_set()


def test_time_in_which_the_work_waits_for_a_core_does_not_count() -> None:
    replies: Iterator[bool] = chain(repeat(True, 50), repeat(False))
    answers: list[bool] = []

    def waits() -> bool:
        answers.append(next(replies))
        return answers[-1]

    time_slice, stopped = sliced(0.01, waits)
    with time_slice:
        assert stopped.wait(10)
    assert answers.count(False) >= 10


def test_no_bound_runs_for_any_time() -> None:
    time_slice, stopped = sliced(None)
    with time_slice:
        assert not stopped.is_set()
