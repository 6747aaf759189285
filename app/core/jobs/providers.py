"""Provides handlers with what accepts their request as a job."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from app.access.tenants.values import Principal
from app.core.catalog.service import GrantedDatasets
from app.core.jobs.handlers.accepted import Acceptance
from app.core.jobs.handlers.waiting import JobWaiter, JobWaits
from app.core.jobs.service.jobs import Jobs
from app.http.dependencies import Provided, Provider
from app.http.in_flight import InFlight
from app.http.limits.threads import Threads
from app.http.parameters.headers import Preference
from app.http.request import ApiRequest


async def waiter(
    request: ApiRequest,
    job_waits: Provided[JobWaits],
    jobs: Provided[Jobs],
    granted_datasets: Provided[GrantedDatasets],
) -> JobWaiter:
    """What waits for jobs, until the credential of this request ends."""
    return JobWaiter(job_waits, request.auth, partial(jobs.shown, granted_datasets))


async def acceptance(
    request: ApiRequest,
    idempotency_key: Provided[str | None],
    preference: Provided[Preference],
    principal: Provided[Principal],
    in_flight: Provided[InFlight],
    threads: Provided[Threads],
    waiter: Provided[JobWaiter],
) -> Acceptance:
    """What accepts this request as a job."""
    return Acceptance(
        idempotency_key=idempotency_key,
        preference=preference,
        actor=principal.actor,
        in_flight=in_flight,
        threads=threads,
        waiter=waiter,
        state=request.scope["state"],
    )


PROVIDERS: Final[Mapping[str, Provider]] = {"waiter": waiter, "acceptance": acceptance}
