"""What every handler works with; the composition root makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from litestar.connection import ASGIConnection

from app.catalog.service import Datasets
from app.changes.handlers.head_watches import HeadPolls
from app.changes.handlers.shared_pages import SharedPages
from app.changes.service.feed_starts import FeedStarts
from app.changes.service.read_changes import ReadChanges
from app.changes.service.read_corrections import ReadCorrections
from app.consumers.service.consumers import Consumers
from app.exports.service.exports import ManageExports
from app.http.credentials import Credentials
from app.http.in_flight import InFlight
from app.http.request import ApiRequest as ApiRequest
from app.http.threads import OUTBOUND_THREADS_MAX, Threads
from app.http.waiting.subscriptions import Subscriptions
from app.idempotency.service import RunOnce
from app.jobs.handlers.job_watches import JobPolls
from app.jobs.ports import Jobs
from app.maintenance.service.table_services import TableServiceRequests
from app.metastore.service.reports import MetastoreReports
from app.overview.service import Overview
from app.partitions.service.partitions import Partitions
from app.quarantine.service import Quarantine
from app.reads.service.jobs import ReadJobs
from app.reads.service.rows import ReadTable
from app.timeline.service.read_timeline import ReadTimeline
from app.transactions.service import AcceptTransaction
from app.verifications.service.verifications import Verifications
from app.versions.service.comparisons import Comparisons
from app.versions.service.name_versions import NameVersions
from app.versions.service.restores import Restores
from app.views.service.views import DerivedViews
from app.webhooks.service.webhooks import Webhooks
from app.writes.service.accept import AcceptWrite
from app.writes.service.explain import ExplainWrite


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the service needs. Without a `required` one it is not ready, without others slower."""

    name: Annotated[str, msgspec.Meta(examples=["database"])]
    """What is checked."""
    ok: Annotated[bool, msgspec.Meta(examples=[True])]
    """Whether it works."""
    required: bool = True
    """Whether the service cannot serve without it."""
    detail: str = ""
    """What is wrong; empty where it works."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """The use cases behind the resources. They are synchronous: handlers call them through `threads`."""

    credentials: Credentials
    datasets: Datasets
    views: DerivedViews
    accept_write: AcceptWrite
    accept_transaction: AcceptTransaction
    read_changes: ReadChanges
    feed_starts: FeedStarts
    read_corrections: ReadCorrections
    read_table: ReadTable
    read_jobs: ReadJobs
    consumers: Consumers
    explain_write: ExplainWrite
    exports: ManageExports
    quarantine: Quarantine
    webhooks: Webhooks
    partitions: Partitions
    metastore_reports: MetastoreReports
    overview: Overview
    table_services: TableServiceRequests
    verifications: Verifications
    name_versions: NameVersions
    restores: Restores
    comparisons: Comparisons
    jobs: Jobs
    transactions: AcceptTransaction
    run_once: RunOnce
    read_timeline: ReadTimeline
    readiness: Callable[[], list[Check]]
    json_body_bytes_max: int
    upload_bytes_max: int
    threads: Threads
    subscriptions: Subscriptions
    pages: SharedPages
    head_polls: HeadPolls
    job_polls: JobPolls
    in_flight: InFlight = field(default_factory=InFlight)
    outbound: Threads = field(default_factory=lambda: Threads(OUTBOUND_THREADS_MAX))


def services_of(connection: ASGIConnection) -> Services:
    """The services of the application that received the request."""
    services: Services = connection.app.state.services
    return services


def tenant_of(request: ApiRequest) -> str:
    """The tenant of the credential, the only place a tenant ever comes from."""
    return request.user.tenant_id


def actor_of(request: ApiRequest) -> str:
    """The id of the credential: the actor of the jobs and instants that the request makes."""
    return request.user.key_id
