"""Publishing a commit, also when its answer is lost."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from app.lake.conflict import Conflicted
from app.lake.errors import Unavailable
from app.services.model import Fenced, NewCommit, Published
from app.services.ports import OutcomeUnknown, Timeline

_log = logging.getLogger(__name__)
_PAUSE_SECONDS_MAX = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Publish:
    """The one way to a new version."""

    timeline: Timeline

    def run(self, tenant_id: str, commit: NewCommit) -> Published | Conflicted | Fenced:
        """Publishes a commit.

        If the connection breaks while COMMIT is under way, nothing is deleted and nothing is assumed: the head row
        is asked (behind its lock) whether the jobs were published, for as long as it takes to get an answer.
        """
        pause_seconds = 0.1
        unknown = False
        while True:
            try:
                if unknown:
                    job_ids = [outcome.claim.job_id for outcome in commit.outcomes]
                    found = self.timeline.outcome_of(tenant_id, commit.dataset_id, job_ids)
                    if found is not None:
                        return found
                return self.timeline.publish(tenant_id, commit)
            except OutcomeUnknown:
                _log.warning("the answer to COMMIT was lost; asking for the outcome")
                unknown = True
            except Unavailable:
                _log.warning("the database is out of reach; the commit waits")
            time.sleep(pause_seconds)
            pause_seconds = min(pause_seconds * 2, _PAUSE_SECONDS_MAX)
