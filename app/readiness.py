"""Whether the API is ready: the database, a worker, and Redis."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from app.format.errors import HeadwaterError
from app.http.context import Check
from app.jobs.repository.workers import WorkerStore
from app.messaging.announcements import Announcements
from app.settings import Settings

# Between two polls of a worker its sign of life is old; three missed ones mean that it is gone.
_POLLS_MISSED_MAX: Final = 3


def readiness(
    settings: Settings, workers: WorkerStore, announcements: Announcements
) -> Callable[[], list[Check]]:
    def checks() -> list[Check]:
        redis = announcements.reachable()
        return [
            *_database_checks(workers, settings.poll_seconds * _POLLS_MISSED_MAX),
            Check(
                name="redis",
                ok=redis,
                required=False,
                detail="" if redis else "out of reach: work and changes are found by polling",
            ),
        ]

    return checks


def _database_checks(workers: WorkerStore, seconds: float) -> list[Check]:
    try:
        alive = workers.alive(seconds)
    except HeadwaterError as error:
        return [Check(name="database", ok=False, detail=error.detail)]
    # No tables yet, say, or those of another release. The log has the statement, the answer does not.
    except Exception as error:
        logging.getLogger(__name__).warning("the database does not fit this release: %s", error)
        return [Check(name="database", ok=False, detail="it does not have this release's schema")]
    detail = "" if alive else "no worker has polled lately: writes are accepted and wait"
    return [Check(name="database", ok=True), Check(name="worker", ok=alive > 0, detail=detail)]
