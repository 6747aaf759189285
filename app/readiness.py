"""The readiness of the API: the database, a worker, and Redis."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from app.format.errors import HeadwaterError
from app.http.health import Check
from app.jobs.repository.workers import WorkerStore
from app.messaging.announcements import Announcements
from app.settings import Settings

# A worker reports with each poll; after three missed polls it counts as gone.
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
    # For example there are no tables yet, or those of another release. The log has the statement, the reply does not.
    except Exception as error:
        logging.getLogger(__name__).warning(
            "the schema of the database does not match this release: %s", error
        )
        return [Check(name="database", ok=False, detail="it does not have this release's schema")]
    detail = "" if alive else "no worker has polled recently: writes are accepted and wait"
    return [Check(name="database", ok=True), Check(name="worker", ok=alive > 0, detail=detail)]
