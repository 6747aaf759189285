"""Composes the use cases of verifications."""

from __future__ import annotations

from app.core.jobs.engine import Engine
from app.core.jobs.service.run_tasks import TaskHandler
from app.core.jobs.values import JobKind
from app.core.platform import Platform
from app.features.verifications.service.run import RunVerify
from app.features.verifications.service.verifications import Verifications


def verifications(platform: Platform) -> Verifications:
    """Verifications in the API."""
    return Verifications(request_job=platform.request_job)


def dependencies(platform: Platform) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {"verifications": verifications(platform)}


def tasks(platform: Platform, engine: Engine) -> dict[JobKind, TaskHandler]:
    """The kind of task that compares a feed with its table."""
    run = RunVerify(
        catalog=platform.stores.catalog,
        jobs=platform.stores.jobs,
        timeline=platform.stores.timeline,
        index=platform.changelog,
        leases=platform.leases,
        pins=platform.pins,
        engine=engine,
    )
    return {JobKind.VERIFY: run}
