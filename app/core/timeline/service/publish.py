"""Publishes commits, also if the connection breaks at COMMIT."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.core.timeline.ports import OutcomeUnknown, Publication
from app.core.timeline.values import Fenced, NewCommit, Overtaken, Published
from app.infra.errors import Unavailable
from app.kernel.commit.conflict import Conflicted

_log = logging.getLogger(__name__)
_PAUSE_SECONDS_MAX = 5.0
_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, kw_only=True, slots=True)
class Publish:
    """Publishes commits; all new versions are made through it."""

    timeline: Publication

    def run(
        self, tenant_id: str, commits: Sequence[NewCommit]
    ) -> tuple[Published, ...] | Conflicted | Overtaken | Fenced:
        """Publishes commits of different datasets, all or none. Raises CommitConflict, see `Publication.publish`.

        If the connection breaks at COMMIT, the outcome is unknown. Nothing is deleted; whether the jobs were published
        is read under the locks of the head rows, repeatedly until the database responds.
        """
        return publish_until_known(
            self.timeline.outcome_of, tenant_id, commits, lambda: self.timeline.publish(tenant_id, commits)
        )


def publish_until_known(
    outcome_of: Callable[[str, Mapping[str, Sequence[str]]], tuple[Published, ...] | None],
    tenant_id: str,
    commits: Sequence[NewCommit],
    publish: Callable[[], _Outcome],
) -> _Outcome | tuple[Published, ...]:
    """The outcome of `publish`, or of an earlier try whose response was lost."""
    jobs_of = {commit.dataset_id: [outcome.claim.job_id for outcome in commit.outcomes] for commit in commits}
    pause_seconds = 0.1
    in_doubt = False
    while True:
        try:
            if in_doubt:
                publications = outcome_of(tenant_id, jobs_of)
                if publications is not None:
                    return publications
            return publish()
        except OutcomeUnknown:
            _log.warning("the response to COMMIT was lost; reading the outcome")
            in_doubt = True
        except Unavailable:
            _log.warning("the database is unavailable; the commit waits")
        time.sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 2, _PAUSE_SECONDS_MAX)
