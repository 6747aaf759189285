"""Publishing a commit, also when its answer is lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.commit.conflict import Conflicted
from app.format.errors import Unavailable
from app.timeline.ports import OutcomeUnknown, Timeline
from app.timeline.values import Fenced, NewCommit, Overtaken, Published

_log = logging.getLogger(__name__)
_PAUSE_SECONDS_MAX = 5.0
_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, kw_only=True, slots=True)
class Publish:
    """The one way to new versions."""

    timeline: Timeline

    def run(
        self, tenant_id: str, commits: Sequence[NewCommit]
    ) -> tuple[Published, ...] | Conflicted | Overtaken | Fenced:
        """Publishes commits of different datasets, all or none. Raises CommitConflict, see `Timeline.publish`.

        If the connection breaks while COMMIT is under way, nothing is deleted and nothing is assumed: the head rows
        are asked (behind their locks) whether the jobs were published, for as long as it takes to get an answer.
        """
        return publish_until_known(
            self.timeline, tenant_id, commits, lambda: self.timeline.publish(tenant_id, commits)
        )


def publish_until_known(
    timeline: Timeline, tenant_id: str, commits: Sequence[NewCommit], publish: Callable[[], _Outcome]
) -> _Outcome | tuple[Published, ...]:
    """What `publish` says of these commits, or that they were published by a try whose answer was lost."""
    jobs_of = {commit.dataset_id: [outcome.claim.job_id for outcome in commit.outcomes] for commit in commits}
    pause_seconds = 0.1
    unknown = False
    while True:
        try:
            if unknown:
                found = timeline.outcome_of(tenant_id, jobs_of)
                if found is not None:
                    return found
            return publish()
        except OutcomeUnknown:
            _log.warning("the answer to COMMIT was lost; asking for the outcome")
            unknown = True
        except Unavailable:
            _log.warning("the database is out of reach; the commit waits")
        time.sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 2, _PAUSE_SECONDS_MAX)
