"""How jobs are printed."""

from __future__ import annotations

from typing import Final

from headwater_client.cli.printing.output import Output
from headwater_client.models import Job

_COUNTS: Final = ("inserted", "updated", "deleted", "unchanged", "quarantined", "late")


def counts_text(job: Job) -> str:
    """What a job did to rows, such as `2 inserted, 1 updated`."""
    counts = ((name, getattr(job.rows, name)) for name in _COUNTS)
    return ", ".join(f"{number:,} {name}" for name, number in counts if number) or "no rows"


def version_text(job: Job) -> str:
    """The version that a job has committed, such as `version 3`, or that no row changed."""
    if job.kind == "write" and job.first_offset is None:
        return f"no row changed, still version {job.committed_version:,}"
    return f"version {job.committed_version:,}"


def print_job(output: Output, dataset: str, job: Job) -> None:
    """Prints the job that a command has started: a sentence for people."""
    if job.state != "succeeded":
        output.done(f"Job {job.id} is {job.state}. Wait for it: headwater jobs wait {job.id}", job)
        return
    done = f"{dataset}: {job.kind} {job.state}"
    if job.committed_version is not None:
        done += f", {version_text(job)}: {counts_text(job)}"
    output.done(done, job)
