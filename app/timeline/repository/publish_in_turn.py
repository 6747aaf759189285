"""The commit transaction of table services: published between two groups of writes, and never in their way."""

from __future__ import annotations

from sqlalchemy import Connection

from app.commit.conflict import Conflicted
from app.jobs.repository.claim import held_by
from app.jobs.repository.ending import lock_jobs, post
from app.jobs.repository.turns import ask_for_turn, end_turn, groups_at_work, lock_datasets
from app.timeline.repository.publish import lock_heads, makes_version, publish_commits
from app.timeline.values import Fenced, NewCommit, Published, Waits


def publish_in_turn(
    connection: Connection, commit: NewCommit, turn_seconds: float
) -> Published | Conflicted | Fenced | Waits:
    """Publishes the commit unless writes of its dataset run: then none are claimed for `turn_seconds`, if any.

    No writes are claimed while this decides, so none that run now have read what it replaces. The caller commits what
    waits, and rolls back what conflicts or is fenced.
    """
    lock_heads(connection, [commit.dataset_id])
    lock_datasets(connection, [commit.dataset_id])
    claims = [outcome.claim for outcome in commit.outcomes]
    held = lock_jobs(connection, held_by(claims))
    if len(held) < len(claims):
        return Fenced(held=frozenset(held))
    # What makes no version is in nobody's way.
    groups = groups_at_work(connection, commit.dataset_id) if makes_version(commit) else 0
    if groups:
        if turn_seconds:
            ask_for_turn(connection, commit.dataset_id, turn_seconds)
        return Waits(groups=groups)
    outcome = publish_commits(connection, [commit])
    if not isinstance(outcome, tuple):
        return outcome
    end_turn(connection, commit.dataset_id)
    post(connection, "tasks", commit.dataset_id)
    [published] = outcome
    return published
