"""What every handler works with; the composition root makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State

from app.api.credentials import Credentials
from app.api.in_flight import InFlight
from app.api.looks import HeadWatches, JobWatches
from app.api.shared_pages import SharedPages
from app.api.threads import OUTBOUND_THREADS_MAX, Threads
from app.api.wakeups import Wakeups
from app.services.accept_transaction import AcceptTransaction, Transactions
from app.services.accept_write import AcceptWrite
from app.services.comparisons import Comparisons
from app.services.consumers import Consumers
from app.services.datasets import Datasets
from app.services.derived_views import DerivedViews
from app.services.explain_write import ExplainWrite
from app.services.exports import ManageExports
from app.services.metastore_reports import MetastoreReports
from app.services.model import Principal
from app.services.name_versions import NameVersions
from app.services.overview import Overview
from app.services.partitions import Partitions
from app.services.ports import Jobs
from app.services.quarantine import Quarantine
from app.services.read_changes import ReadChanges
from app.services.read_corrections import ReadCorrections
from app.services.read_jobs import ReadJobs
from app.services.read_table import ReadTable
from app.services.read_timeline import ReadTimeline
from app.services.restores import Restores
from app.services.table_services import TableServices
from app.services.verify import Verify
from app.services.webhooks import Webhooks


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the service needs. Without a `required` one it is not ready, without others slower."""

    name: str
    ok: bool
    required: bool = True
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """The use cases behind the resources. They are synchronous: handlers call them through `threads`."""

    credentials: Credentials
    datasets: Datasets
    views: DerivedViews
    accept_write: AcceptWrite
    accept_transaction: AcceptTransaction
    read_changes: ReadChanges
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
    table_services: TableServices
    verify: Verify
    name_versions: NameVersions
    restores: Restores
    comparisons: Comparisons
    jobs: Jobs
    transactions: Transactions
    read_timeline: ReadTimeline
    readiness: Callable[[], list[Check]]
    json_body_bytes_max: int
    upload_bytes_max: int
    threads: Threads
    wakeups: Wakeups
    pages: SharedPages
    heads: HeadWatches
    job_watches: JobWatches
    in_flight: InFlight = field(default_factory=InFlight)
    outbound: Threads = field(default_factory=lambda: Threads(OUTBOUND_THREADS_MAX))


ApiRequest: TypeAlias = Request[Principal, None, State]


def services_of(connection: ASGIConnection) -> Services:
    """The services of the application that received the request."""
    services: Services = connection.app.state.services
    return services


def tenant_of(request: ApiRequest) -> str:
    """The tenant of the credential, the only place a tenant ever comes from."""
    return request.user.tenant_id


def actor_of(request: ApiRequest) -> str:
    """Who asks: the credential, by its id. Whatever makes a job or an instant is given it."""
    return request.user.key_id
