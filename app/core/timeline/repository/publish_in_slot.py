"""The commit transaction of table services: published between two groups of writes, which it never delays."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from app.core.jobs.repository.commit_slots import lock_datasets, release_slot, request_slot, running_groups
from app.core.jobs.repository.job_locks import held_by, lock_jobs
from app.core.jobs.repository.outbox import post
from app.core.timeline.repository.participants import CommitParticipant
from app.core.timeline.repository.publish import lock_heads, makes_version, publish_commits
from app.core.timeline.values import Fenced, NewCommit, Overtaken, Published, WritesRunning
from app.kernel.commit.conflict import Conflicted


def publish_in_slot(
    connection: Connection,
    commit: NewCommit,
    slot_seconds: float,
    participants: Sequence[CommitParticipant],
) -> Published | Conflicted | Fenced | WritesRunning:
    """Publishes the commit if no writes of its dataset run. Otherwise reserves a commit slot of `slot_seconds`, if not
    0.

    No writes are claimed during this transaction, so no running write has read files that the commit replaces. The
    caller commits after WritesRunning, and rolls back after a conflict or a fenced claim.
    """
    lock_heads(connection, [commit.dataset_id])
    lock_datasets(connection, [commit.dataset_id])
    claims = [outcome.claim for outcome in commit.outcomes]
    held_ids = lock_jobs(connection, held_by(claims))
    if len(held_ids) < len(claims):
        return Fenced(valid_ids=frozenset(held_ids))
    # A commit that makes no version conflicts with no write.
    groups = running_groups(connection, commit.dataset_id) if makes_version(commit) else 0
    if groups:
        if slot_seconds:
            request_slot(connection, commit.dataset_id, slot_seconds)
        return WritesRunning(groups=groups)
    outcome = publish_commits(connection, [commit], participants)
    if isinstance(outcome, Overtaken):
        raise TypeError("a table service moves no positions in feeds")
    if not isinstance(outcome, tuple):
        return outcome
    release_slot(connection, commit.dataset_id)
    post(connection, "tasks", commit.dataset_id)
    [publication] = outcome
    return publication
