"""Loops: they go on after every fault, back off, and say when they stand still."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise

from app.infra.runtime.loops import Loop, Loops
from tests.support.waiting import until


def test_loop_goes_on_after_every_fault_and_logs_the_first_of_a_row(caplog) -> None:
    rounds, enough = [], threading.Event()

    def run() -> None:
        rounds.append(None)
        if len(rounds) in (2, 3, 4):
            raise ZeroDivisionError("a bug")
        if len(rounds) == 6:
            enough.set()

    loops = Loops()
    loops.add(Loop("sweeper", run, every_seconds=0.001))
    caplog.set_level("INFO", logger="app.infra.runtime.loops")
    loops.start()
    assert enough.wait(10)
    loops.stop(10)
    failed = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [bool(record.exc_info) for record in failed] == [True, False]
    assert [record.getMessage() for record in caplog.records if record.levelname == "INFO"] == [
        "the loop sweeper works again"
    ]


def failing(times: list[float]) -> Callable[[], None]:
    def run() -> None:
        times.append(time.monotonic())
        raise ZeroDivisionError("a bug")

    return run


def test_loop_that_fails_backs_off_and_is_reported_until_it_works() -> None:
    times: list[float] = []
    loops, stuck, release = Loops(), threading.Event(), threading.Event()
    loops.add(Loop("works", lambda: None, every_seconds=0.01, still_seconds=0.3))
    loops.add(Loop("fails", failing(times), every_seconds=0.01, still_seconds=0.3))

    def hang() -> None:
        stuck.set()
        release.wait()

    loops.add(Loop("hangs", hang, every_seconds=0.01, still_seconds=0.3))
    loops.start()
    assert stuck.wait(10)
    until(lambda: set(loops.still()) == {"fails", "hangs"}, "the loops to be reported")
    assert len(times) < 8, "the pauses double"
    release.set()
    until(lambda: set(loops.still()) == {"fails"}, "the loop to go on")
    loops.stop(10)


def test_delayed_loop_waits_for_its_first_period_and_wakes_at_a_stop() -> None:
    rounds: list[None] = []
    loops = Loops()
    loops.add(Loop("rare", lambda: rounds.append(None), every_seconds=3600, waits_first=True))
    loops.start()
    loops.stop(10)
    assert not rounds
    assert not [thread for thread in threading.enumerate() if thread.name == "rare"]


def test_wakes_during_a_round_and_the_time_after_it_share_the_next_round() -> None:
    began, go, rounds = threading.Event(), threading.Event(), []

    def run() -> None:
        rounds.append(None)
        began.set()
        assert go.wait(10)

    woken = threading.Event()
    loops = Loops()
    loops.add(Loop("relay", run, every_seconds=60, apart_seconds=0.05, woken=woken))
    loops.start()
    assert began.wait(10)
    for _ in range(100):
        woken.set()
    go.set()
    until(lambda: len(rounds) == 2, "the next round")
    woken.set()
    until(lambda: len(rounds) == 3, "a round after the last wake")
    loops.stop(10)
    assert len(rounds) == 3


def test_woken_loop_rests_longer_after_a_long_round() -> None:
    times = list[tuple[float, float]]()

    def run() -> None:
        began = time.monotonic()
        time.sleep(0.03)
        times.append((began, time.monotonic()))

    woken = threading.Event()
    loops = Loops()
    loops.add(Loop("relay", run, every_seconds=60, apart_seconds=0.001, woken=woken))
    loops.start()
    until(lambda: woken.set() or len(times) >= 3, "three rounds")
    loops.stop(10)
    assert all(next_[0] - last[1] >= 0.1 for last, next_ in pairwise(times))
