"""The poller of workers: a source that fails stops neither the others nor the poller."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.infra.errors import Unavailable
from app.infra.runtime.loops import Loop
from workers.jobs.poller import Poller, PollSource
from workers.jobs.runner import Runner

WORK = [("tenant", "dataset")]


class Ran:
    """A use case that notes its runs."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        assert (tenant_id, dataset_id) == WORK[0]
        self.event.set()
        return False


class Finder:
    """Finds work, but fails the first times."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    def __call__(self, limit: int) -> list[tuple[str, str]]:
        if self.failures:
            raise self.failures.pop()
        return WORK[:limit]


def runner_of(use_case: Ran) -> Runner:
    return Runner(use_case, name="test", threads=1, per_dataset_max=1)


@contextmanager
def running(poller: Poller) -> Iterator[None]:
    stop = threading.Event()
    loop = Loop("poller", poller.run, every_seconds=0.001)
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    yield
    stop.set()
    loop.woken.set()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("failure", [Unavailable("no database"), ZeroDivisionError("a bug")])
def test_poll_that_fails_stops_no_other_source_and_is_repeated(failure: Exception) -> None:
    first, second, alive = Ran(), Ran(), threading.Event()
    reports: list[bool] = []

    def report() -> None:
        reports.append(first.event.is_set())
        if len(reports) == 1:
            raise failure
        alive.set()

    runners = runner_of(first), runner_of(second)
    sources = [
        PollSource(find=Finder(failure, failure), runner=runners[0]),
        PollSource(find=Finder(), runner=runners[1]),
    ]
    with running(Poller(sources, alive=report)):
        assert second.event.wait(10)
        assert first.event.wait(10)
        assert alive.wait(10), "a failed report is repeated"
    for runner in runners:
        assert runner.stop(10)


def test_worker_does_not_report_itself_alive_while_a_source_fails() -> None:
    other, reports = Ran(), threading.Event()
    failing = Finder(*[ZeroDivisionError("a bug")] * 100_000)
    runners = runner_of(Ran()), runner_of(other)
    sources = [PollSource(find=failing, runner=runners[0]), PollSource(find=Finder(), runner=runners[1])]
    with running(Poller(sources, alive=reports.set)):
        assert other.event.wait(10)
    assert not reports.is_set()
    for runner in runners:
        assert runner.stop(10)


def test_poll_takes_as_many_datasets_as_its_source_permits() -> None:
    requested: list[int] = []
    source = PollSource(
        find=lambda limit: requested.append(limit) or [], runner=runner_of(Ran()), datasets_max=3
    )  # type: ignore[func-returns-value]
    Poller([source]).run()
    assert requested == [3]
