"""The interface of jobs to Spark."""

from __future__ import annotations

from typing import Protocol

from app.core.jobs.values import Job


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
