"""Running tasks: how each way in which one ends is reported, and what a worker does that has lost its own."""

from __future__ import annotations

import errno
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.core.jobs.errors import EngineStopped
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.jobs.kinds.verification import VerifyTask
from app.core.jobs.service.run_tasks import RunTasks, TaskHandler
from app.core.jobs.values import Claim, ClaimRules, Job, JobState, Progress
from app.infra.errors import StorageFull, StorageUnavailable, Unavailable
from app.infra.files.errors import CorruptFile
from app.kernel.format.errors import Fault
from app.kernel.format.instant import RowCounts

NOW = datetime(2026, 11, 21, tzinfo=UTC)
RULES = ClaimRules(lease_seconds=30, group_jobs_max=1, dataset_writers_max=1, attempts_max=3)
JOB = Job(
    id="j", tenant_id="t", dataset_id="d", dataset_name="orders", instant_id=None,
    kind=JobKind.VERIFICATION, state=JobState.RUNNING,
    request=VerifyTask(), progress=Progress(stage="claimed"), attempts=1, epoch=4, committed_version=None,
    first_offset=None, last_offset=None, rows=RowCounts(), error=None, created_at=NOW, started_at=NOW,
    finished_at=None, transaction_id=None,
)  # fmt: skip


@dataclass
class JobTable:
    """One task that waits, and what was done to it. `held`: whether heartbeats find the claim valid."""

    waiting: list[Job]
    claim_valid: bool = True
    done: list[tuple[str, Any]] = field(default_factory=list)
    beats: list[Progress] = field(default_factory=list)

    def claim_task(self, tenant_id: str, dataset_id: str, owner: str, rules: ClaimRules) -> Job | None:
        assert (tenant_id, dataset_id, owner, rules) == ("t", "d", "worker", RULES)
        return self.waiting.pop() if self.waiting else None

    def heartbeat(
        self, tenant_id: str, claims: Sequence[Claim], *, lease_seconds: float, progress: Progress
    ) -> set[str]:
        self.beats.append(progress)
        return {claim.job_id for claim in claims} if self.claim_valid else set()

    def fail(self, tenant_id: str, claim: Claim, fault: Fault) -> bool:
        self.done.append(("failed", (claim, fault.code, fault.facts)))
        return True

    def postpone(self, tenant_id: str, claims: Sequence[Claim], waiting_for: str) -> None:
        self.done.append((f"waits for the {waiting_for}", list(claims)))

    def release(self, tenant_id: str, claims: Sequence[Claim]) -> None:
        self.done.append(("released", list(claims)))

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"running a task does not request {name}")


@dataclass
class Engine:
    """Reports tasks done, and remembers what was stopped."""

    stopped: threading.Event = field(default_factory=threading.Event)
    tags: list[str] = field(default_factory=list)

    def progress(self, tag: str) -> tuple[int, int]:
        return 2, 5

    def cancel(self, tag: str) -> None:
        self.tags.append(tag)
        self.stopped.set()


@dataclass
class Ends:
    """A handler that ends in one way."""

    how: Exception | None = None
    ran: list[tuple[Job, str]] = field(default_factory=list)

    def run(self, job: Job, task: VerifyTask, tag: str) -> None:
        self.ran.append((job, tag))
        if self.how is not None:
            raise self.how


@dataclass
class World:
    """A worker and what it works on. `announced` counts how often the relay was woken."""

    handler: TaskHandler[Any]
    jobs: JobTable = field(default_factory=lambda: JobTable([JOB]))
    engine: Engine = field(default_factory=Engine)
    announced: list[None] = field(default_factory=list)
    seconds_max: float = 60
    kind: JobKind = JobKind.VERIFICATION

    def run(self) -> bool:
        return RunTasks(
            jobs=self.jobs,
            handlers={self.kind: self.handler},
            engine=self.engine,
            announce=lambda: self.announced.append(None),
            owner="worker",
            rules=RULES,
            heartbeat_seconds=0.01,
            seconds_max={"t": self.seconds_max}.__getitem__,
        ).run("t", "d")


def test_task_runs_under_its_own_tag() -> None:
    handler = Ends()
    world = World(handler)
    assert world.run()
    assert handler.ran == [(JOB, "t/j-4")]
    assert world.jobs.done == [], "its handler has ended it"
    assert len(world.announced) == 1
    assert not world.run()
    assert len(world.announced) == 1, "nothing has ended"


def test_task_error_is_stored() -> None:
    world = World(Ends(CorruptFile("data/1 is gone", path="data/1")))
    assert world.run()
    assert world.jobs.done == [("failed", (JOB.claim, "corrupt-file", {"path": "data/1"}))]
    assert len(world.announced) == 1


def test_lost_claim_leaves_the_task_unchanged() -> None:
    world = World(Ends(EngineStopped()))
    assert world.run()
    assert world.jobs.done == []


@pytest.mark.parametrize(
    ("how", "what"),
    [
        (Unavailable("no database"), "database"),
        (StorageUnavailable("no storage", path="data/1"), "storage"),
        (OSError(errno.EROFS, "read-only file system"), "storage"),
        (StorageFull("no space", path="data/1"), "space"),
    ],
)
def test_task_waits_for_the_environment(how: Exception, what: str) -> None:
    world = World(Ends(how))
    assert world.run()
    assert world.jobs.done == [(f"waits for the {what}", [JOB.claim])]


def test_missing_module_fails_the_task() -> None:
    world = World(Ends(ModuleNotFoundError("No module named 'pandas'")))
    assert world.run()
    assert world.jobs.done == [("failed", (JOB.claim, "internal", {}))]


def test_unexpected_error_releases_the_task() -> None:
    world = World(Ends(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        world.run()
    assert world.jobs.done == [("released", [JOB.claim])]
    assert len(world.announced) == 1


@dataclass
class Endless:
    """Runs until the engine is stopped."""

    engine: Engine

    def run(self, job: Job, task: VerifyTask, tag: str) -> None:
        assert self.engine.stopped.wait(10)
        raise EngineStopped


def test_lost_lease_stops_the_engine() -> None:
    engine = Engine()
    world = World(Endless(engine), jobs=JobTable([JOB], claim_valid=False), engine=engine)
    assert world.run()
    assert engine.tags == ["t/j-4"]
    assert world.jobs.beats == [Progress(stage="verify", done=2, total=5)]
    assert world.jobs.done == []


def test_task_that_exceeds_its_time_limit_fails_once() -> None:
    engine = Engine()
    world = World(Endless(engine), engine=engine, seconds_max=0.05)
    assert world.run()
    assert engine.tags == ["t/j-4"]
    assert world.jobs.done == [
        ("failed", (JOB.claim, "time-limit-exceeded", {"limit_seconds": 0.05})),
    ]
    assert len(world.announced) == 1


def test_task_that_ends_after_its_time_limit_keeps_its_result() -> None:
    @dataclass
    class Ignores:
        engine: Engine

        def run(self, job: Job, task: VerifyTask, tag: str) -> None:
            assert self.engine.stopped.wait(10)

    engine = Engine()
    world = World(Ignores(engine), engine=engine, seconds_max=0.05)
    assert world.run()
    assert world.jobs.done == []


def test_table_service_has_no_time_limit() -> None:
    job = msgspec.structs.replace(JOB, kind=JobKind.COMPACTION, request=CompactionTask())
    world = World(Ends(), jobs=JobTable([job]), seconds_max=0, kind=JobKind.COMPACTION)
    assert world.run()
    assert world.engine.tags == []
