"""All checks, in the order in which a fault of one explains those of others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

from app.infra.settings import Settings
from app.process.doctor.postgres import administrator_checks, owner_checks, service_checks
from app.process.doctor.redis import redis_checks
from app.process.doctor.spark import java_checks, spark_checks
from app.process.doctor.storage import storage_checks
from app.process.doctor.values import Diagnosis, Verdict

_log = logging.getLogger(__name__)

Checks = Callable[[Settings], list[Diagnosis]]


class Examined(Enum):
    """What is examined: a whole deployment, what is in its database, or what one of its processes needs."""

    DEPLOYMENT = "deployment"
    DATABASE = "database"
    API = "api"
    WORKER = "worker"


_CHECKS: Final[dict[Examined, tuple[Checks, ...]]] = {
    Examined.DEPLOYMENT: (
        service_checks,
        owner_checks,
        administrator_checks,
        redis_checks,
        storage_checks,
        java_checks,
        spark_checks,
    ),
    Examined.DATABASE: (service_checks, administrator_checks),
    Examined.API: (service_checks, administrator_checks, redis_checks, storage_checks),
    # The session finds its Java itself, a moment later.
    Examined.WORKER: (service_checks, redis_checks, storage_checks, spark_checks),
}


def examine(settings: Settings, scope: Examined) -> Iterator[Diagnosis]:
    """The results of the checks, one after another: a check takes up to 20 s where nothing answers."""
    for checks in _CHECKS[scope]:
        yield from checks(settings)


def log_faults(settings: Settings, scope: Examined) -> None:
    """Logs what is wrong, on a thread of its own: a process starts in any case, and its readiness reports faults."""

    def run() -> None:
        for diagnosis in examine(settings, scope):
            if diagnosis.verdict is Verdict.FAILED:
                _log.error("%s: %s", diagnosis.name, diagnosis.detail)
            elif diagnosis.verdict is Verdict.WARNING:
                _log.warning("%s: %s", diagnosis.name, diagnosis.detail)

    threading.Thread(target=run, name="doctor", daemon=True).start()
