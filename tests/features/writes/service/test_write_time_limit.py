"""The time limit of a group of writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from app.core.feature.stagers import StagedInput
from app.core.jobs.errors import EngineStopped
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import Job
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import RawInput
from tests.support.writing import Row, Writing


def row(number: int) -> Row:
    return {"id": number, "day": "2026-11-23", "n": 0, "note": None}


@dataclass
class SlowBodies:
    """The engine's decoding, which takes until the engine is stopped for the `slow` paths."""

    slow: list[str]
    stopped: threading.Event
    original: Callable[..., Any]

    def decode(self, raws: Sequence[RawInput], *args: Any, **named: Any) -> Any:
        if any(raw.path in self.slow for raw in raws):
            assert self.stopped.wait(10)
            self.stopped.clear()
            raise EngineStopped(named["tag"])
        return self.original(raws, *args, **named)


def test_of_writes_that_share_a_commit_only_the_one_that_takes_too_long_fails(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, slow, after = (
        writing.send_raw(b'{"id": %d, "day": "2026-11-23", "n": 0}\n' % number) for number in range(1, 4)
    )
    raw = writing.job(slow).write.raw
    assert raw is not None
    stopped = threading.Event()
    bodies = SlowBodies([raw.path], stopped, writing.engine.decode)
    monkeypatch.setattr(writing.engine, "decode", bodies.decode)
    monkeypatch.setattr(writing.engine, "cancel", lambda tag: stopped.set())
    writing.write_seconds_max = 0.05
    assert writing.run()
    assert [writing.ended(each) for each in (before, slow, after)] == [("queued", None)] * 3
    assert writing.version == 0
    writing.write_seconds_max = 60
    assert writing.run()
    writing.write_seconds_max = 0.05
    assert writing.run()
    writing.write_seconds_max = 60
    assert writing.run()
    assert [writing.ended(each) for each in (before, slow, after)] == [
        ("succeeded", None),
        ("failed", "time-limit-exceeded"),
        ("succeeded", None),
    ]
    error = writing.job(slow).error
    assert error is not None
    assert "HEADWATER_WRITE_SECONDS_MAX" in error.detail
    assert writing.rows() == [row(1), row(3)]
    assert not writing.run()


def test_time_limit_that_passes_after_the_merge_does_not_stop_the_commit(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    monkeypatch.setattr(writing.engine, "cancel", lambda tag: stopped.set())
    publish = writing.timeline.publish

    def late(*args: Any) -> Any:
        assert stopped.wait(10)
        return publish(*args)

    monkeypatch.setattr(writing.timeline, "publish", late)
    job_id = writing.send([row(1)])
    writing.write_seconds_max = 0.05
    assert writing.run()
    assert writing.ended(job_id) == ("succeeded", None)
    assert writing.rows() == [row(1)]


@dataclass
class Endless:
    """Derives until the engine is stopped."""

    stopped: threading.Event

    def stage(self, job: Job, prefix: str, tag: str) -> StagedInput:
        assert self.stopped.wait(10)
        raise EngineStopped(tag)


def test_refresh_that_exceeds_its_time_limit_fails_once_and_leaves_nothing(
    followed: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    monkeypatch.setattr(followed.engine, "cancel", lambda tag: stopped.set())
    followed.seconds_max = 0.05
    job_id = followed.accept(WriteRequest(operation=Operation.UPSERT, derived=True))
    assert followed.run(stagers={JobKind.REFRESH: Endless(stopped)})
    error = followed.job(job_id).error
    assert error is not None
    assert (error.code, error.facts) == ("time-limit-exceeded", {"limit_seconds": 0.05})
    assert followed.version == 0
    assert not followed.run()


def test_refresh_that_uses_up_its_time_slice_runs_again_as_a_slow_one(
    followed: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    monkeypatch.setattr(followed.engine, "cancel", lambda tag: stopped.set())
    rules = followed.worker().rules
    derived = msgspec.structs.replace(rules, process=WriteProcess.DERIVED, attempts_max=1)
    job_id = followed.accept(WriteRequest(operation=Operation.UPSERT, derived=True))
    endless = {JobKind.REFRESH: Endless(stopped)}
    assert followed.run(rules=derived, slice_seconds=0.05, stagers=endless)
    assert followed.ended(job_id) == ("queued", None)
    assert not followed.run(rules=derived, slice_seconds=0.05, stagers=endless)
    assert followed.handed_over == [(WriteProcess.SLOW, followed.tenant_id, followed.dataset.id)]
    # The first attempt does not count, so that one is left.
    slow = msgspec.structs.replace(derived, process=WriteProcess.SLOW)
    stopped.clear()
    followed.seconds_max = 0.05
    assert followed.run(rules=slow, stagers=endless)
    assert followed.ended(job_id) == ("failed", "time-limit-exceeded")
