"""The fair queue: whose work is next. Time is simulated: no test sleeps."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import count, cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.jobs import fair_queue
from workers.jobs.fair_queue import FairQueue, Turn
from workers.jobs.runner import equal_weight


def new_queue(*, weights: dict[str, float] | None = None, per_dataset_max: int = 1) -> FairQueue:
    weight = equal_weight if weights is None else weights.__getitem__
    return FairQueue(weight=weight, per_dataset_max=per_dataset_max)


class Simulation:
    """Threads that work at a queue. A dataset has this number of groups, each of which takes `seconds(tenant)`."""

    def __init__(self, queue: FairQueue, threads: int, seconds: Callable[[str], float]) -> None:
        self.queue = queue
        self.seconds = seconds
        self.free = threads
        self.now = 0.0
        self.groups: Counter[tuple[str, str]] = Counter()
        self.served: defaultdict[str, float] = defaultdict(float)
        self.began: list[tuple[float, str]] = []
        self._numbers = count()
        self._ends: list[tuple[float, int, Turn, float]] = []

    def add(self, tenant: str, datasets: int, groups: int = 1) -> None:
        for number in range(datasets):
            key = (tenant, f"{number:05}")
            self.groups[key] += groups
            assert self.queue.push(*key)
        self._start()

    def _start(self) -> None:
        while self.free and (turn := self.queue.pick(self.now)) is not None:
            self.free -= 1
            self.began.append((self.now, turn.tenant_id))
            took = self.seconds(turn.tenant_id)
            heapq.heappush(self._ends, (self.now + took, next(self._numbers), turn, took))

    def step(self) -> None:
        """Goes on to the end of the next running group."""
        self.now, _, turn, took = heapq.heappop(self._ends)
        self.groups[turn.key] -= 1
        self.served[turn.tenant_id] += took
        self.queue.settle(turn, self.now, again=self.groups[turn.key] > 0)
        self.free += 1
        self._start()

    def run(self, until: float) -> None:
        while self._ends and self._ends[0][0] <= until:
            self.step()

    @property
    def next_end(self) -> float:
        return self._ends[0][0]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("noisy", [1, 50])
def test_first_job_of_a_quiet_tenant_waits_for_one_running_group(threads: int, noisy: int) -> None:
    times = cycle([0.1, 3.0, 0.5, 0.1, 7.0, 1.0])
    simulation = Simulation(new_queue(), threads, lambda tenant: next(times))
    for number in range(noisy):
        simulation.add(f"noisy-{number:02}", datasets=10_000 // noisy // 10, groups=10)
    # Each noisy tenant has had a turn by then: their own first jobs have the same promise.
    for number in range(30):
        simulation.run(until=150.0 + 10.0 * number)
        assert not simulation.free
        until = simulation.next_end
        simulation.add(f"quiet-{number}", datasets=1)
        simulation.run(until)
        assert (until, f"quiet-{number}") in simulation.began


@pytest.mark.parametrize("threads", [1, 3])
def test_tenants_with_unequal_groups_get_time_by_their_weights(threads: int) -> None:
    weights = {"small": 1.0, "large": 1.0, "double": 2.0, "half": 0.5}
    lengths = {
        "small": cycle([0.1]),
        "large": cycle([5.0]),
        "double": cycle([0.1, 4.0, 1.0]),
        "half": cycle([2.0]),
    }
    simulation = Simulation(new_queue(weights=weights), threads, lambda tenant: next(lengths[tenant]))
    for tenant in weights:
        simulation.add(tenant, datasets=5, groups=1_000_000)
    simulation.run(until=3_000.0)
    shares = [simulation.served[tenant] / weight for tenant, weight in weights.items()]
    # A tenant is ahead of another by what one group on each thread takes at most.
    assert max(shares) - min(shares) <= (threads + 1) * 5.0 / 0.5


def test_idle_tenant_saves_up_no_time_and_pays_for_none() -> None:
    simulation = Simulation(new_queue(), 1, lambda tenant: 1.0)
    simulation.add("busy", datasets=2, groups=1_000)
    simulation.run(until=100.0)
    simulation.add("returned", datasets=2, groups=1_000)
    simulation.run(until=200.0)
    assert abs(simulation.served["returned"] - 50.0) <= 1.0
    assert abs(simulation.served["busy"] - 150.0) <= 1.0


def test_datasets_of_a_tenant_take_turns() -> None:
    queue = new_queue()
    for dataset in "abc":
        queue.push("tenant", dataset)
    order = []
    for now in range(7):
        turn = queue.pick(float(now))
        assert turn is not None
        order.append(turn.dataset_id)
        queue.settle(turn, now + 1.0, again=True)
    assert order == list("abcabca")


def test_group_that_runs_for_long_is_charged_before_its_end() -> None:
    """A tenant does not take thread after thread because none of its long groups has ended."""
    queue = new_queue()
    for number in range(5):
        queue.push("long", str(number))
        queue.push("short", str(number))
    first = queue.pick(0.0)
    assert first is not None
    assert first.tenant_id == "long"
    for now in range(1, 10):
        turn = queue.pick(float(now))
        assert turn is not None
        assert turn.tenant_id == "short"
        queue.settle(turn, now + 0.5, again=True)


def test_dataset_woken_during_its_turn_runs_again_once() -> None:
    queue = new_queue()
    queue.push("tenant", "dataset")
    turn = queue.pick(0.0)
    assert turn is not None
    for _ in range(3):
        assert queue.push("tenant", "dataset")
    assert queue.pick(0.5) is None
    queue.settle(turn, 1.0, again=False)
    again = queue.pick(1.0)
    assert again is not None
    queue.settle(again, 2.0, again=False)
    assert queue.pick(2.0) is None


def test_queue_is_bounded_and_has_room_for_each_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "TENANT_DATASETS_MAX", 3)
    monkeypatch.setattr(fair_queue, "DATASETS_MAX", 5)
    queue = new_queue()
    assert [queue.push("first", str(number)) for number in range(5)] == [True, True, True, False, False]
    assert [queue.push("second", str(number)) for number in range(3)] == [True, True, False]
    assert [queue.push("third", str(number)) for number in range(2)] == [True, False]
    assert queue.push("first", "0"), "it waits already"
    assert len(queue) == 6


def turns(queue: FairQueue) -> Iterator[Turn]:
    while (turn := queue.pick(0.0)) is not None:
        yield turn


_KEYS = st.tuples(st.sampled_from("ABC"), st.sampled_from("xyz"))
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), _KEYS),
        st.tuples(st.just("pick"), st.none()),
        st.tuples(st.just("settle"), st.tuples(st.integers(0, 5), st.booleans())),
    ),
    max_size=60,
)


@given(steps=_STEPS, per_dataset_max=st.integers(1, 2), lengths=st.lists(st.floats(0, 9), min_size=1))
def test_queue_runs_what_was_pushed_and_nothing_else(
    steps: list[tuple[str, tuple]], per_dataset_max: int, lengths: list[float]
) -> None:
    """The model: which datasets wait, which were pushed while they could not run more often, and which run."""
    queue = new_queue(per_dataset_max=per_dataset_max)
    waiting: dict[tuple[str, str], None] = {}
    again: set[tuple[str, str]] = set()
    running: list[Turn] = []
    now = 0.0
    for (act, given_), length in zip(steps, cycle(lengths), strict=False):
        now += length
        runs = Counter(turn.key for turn in running)
        if act == "push":
            assert queue.push(*given_)
            if runs[given_] < per_dataset_max:
                waiting.setdefault(given_)
            else:
                again.add(given_)
        elif act == "pick":
            turn = queue.pick(now)
            assert (turn is None) == (not waiting)
            if turn is not None:
                own = [key for key in waiting if key[0] == turn.tenant_id]
                assert turn.key == own[0], "in turn within a tenant"
                assert runs[turn.key] < per_dataset_max
                del waiting[turn.key]
                running.append(turn)
        elif running:
            number, more = given_
            turn = running.pop(number % len(running))
            queue.settle(turn, now, again=more)
            if more or turn.key in again:
                waiting.setdefault(turn.key)
            again.discard(turn.key)
        assert len(queue) == len(waiting)
