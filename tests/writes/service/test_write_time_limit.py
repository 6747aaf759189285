"""The time limit of a group of writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.files.storage import LocalStorage
from app.format.errors import EngineStopped
from app.format.identifiers import new_id
from app.format.rows.staged import RawInput
from tests.support.store_fixtures import Stores
from tests.support.versioned_tables import kind_of
from tests.support.writing import Row, Writing


def row(number: int) -> Row:
    return {"id": number, "day": "2026-11-23", "n": 0, "note": None}


@pytest.fixture
def writing(stores: Stores, tenant_id: str, tmp_path: Path) -> Writing:
    made = stores.catalog.create(tenant_id, new_id(), kind_of("copy_on_write, bloom"))
    return Writing(database=stores.database, storage=LocalStorage(tmp_path), dataset=made)


def ended(writing: Writing, job_id: str) -> tuple[str, str | None]:
    """The state of a job, and the code of its error."""
    job = writing.job(job_id)
    return job.state.value, None if job.error is None else job.error.code


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
    assert [ended(writing, each) for each in (before, slow, after)] == [("queued", None)] * 3
    assert writing.version == 0
    writing.write_seconds_max = 60
    assert writing.run()
    writing.write_seconds_max = 0.05
    assert writing.run()
    writing.write_seconds_max = 60
    assert writing.run()
    assert [ended(writing, each) for each in (before, slow, after)] == [
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
    assert ended(writing, job_id) == ("succeeded", None)
    assert writing.rows() == [row(1)]
