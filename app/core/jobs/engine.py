"""The interface of jobs to Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from app.core.jobs.values import Job
from app.infra.files.staged_file import with_own_rows
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.merge_bundle import bundled
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.engine_task import EngineTask, Result


def engine_tag(job: Job) -> str:
    """Identifies what an attempt at a job, or at the group that it leads, runs on Spark, and its tenant."""
    return f"{job.tenant_id}/{job.id}-{job.epoch}"


def tenant_of_tag(tag: str) -> str:
    """The tenant of an `engine_tag`."""
    return tag.partition("/")[0]


class TaskProgress(Protocol):
    """Progress and cancellation of what runs under a tag on Spark."""

    def progress(self, tag: str) -> tuple[int, int]:
        """The numbers of finished and of all Spark tasks under the tag."""
        ...

    def cancel(self, tag: str) -> None:
        """Stops what runs under the tag; the thread that waits for it gets EngineStopped."""
        ...


class Engine(TaskProgress, Protocol):
    """Runs tasks on Spark."""

    def run(self, tasks: Sequence[EngineTask[Result]], tag: str) -> list[Result]:
        """One result for each task, in order. The tasks are of one kind.

        Raises EngineStopped, and what one of the tasks raises.
        """
        ...


def merge(
    engine: Engine, tasks: Iterable[MergeTask], tag: str, on_lookup: Callable[[float], None] = lambda _: None
) -> list[CommitMessage]:
    """One message for each task, in order. The small tasks of one commit run in few bundles.

    `on_lookup`: called with the seconds that look-ups by key took in the bundle in which they took longest.

    Raises CorruptFile, StorageFull, EngineStopped.
    """
    bundles = bundled(with_own_rows(task) for task in tasks)
    results = engine.run(bundles, tag)
    on_lookup(max((result.lookup_seconds for result in results), default=0.0))
    return [message for result in results for message in result.messages]
