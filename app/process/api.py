"""The features of which the API is composed: its routes, and what their handlers get."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final

from app.access.tenants.ports import ActorStore
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.values import ActorKind
from app.core import api as core
from app.core.compose import read_memory
from app.core.feature.api import ApiProcess, CountOf, FeatureApi
from app.core.feature.feature import merged
from app.core.platform import Platform
from app.features.administration import api as administration
from app.features.alerts import api as alerts
from app.features.console import api as console
from app.features.exports import api as exports
from app.features.iceberg import api as iceberg
from app.features.lineage import api as lineage
from app.features.maintenance import api as maintenance
from app.features.metastore import api as metastore
from app.features.monitoring import api as monitoring
from app.features.objects import api as objects
from app.features.overview import api as overview
from app.features.partitions import api as partitions
from app.features.quarantine import api as quarantine
from app.features.reads import api as reads
from app.features.rendered_files import api as rendered_files
from app.features.retention import api as retention
from app.features.sharing import api as sharing
from app.features.sources import api as sources
from app.features.transactions import api as transactions
from app.features.verifications import api as verifications
from app.features.versions import api as versions
from app.features.views import api as views
from app.features.webhooks import api as webhooks
from app.features.writes import api as writes
from app.http import dependencies as http
from app.http.auth import Resource, Scheme
from app.http.dependencies import Provider
from app.http.health import get_liveness, get_readiness
from app.http.in_flight import InFlight
from app.http.limits.threads import (
    OUTBOUND_TENANT_MAX,
    OUTBOUND_THREADS_MAX,
    ROW_STREAMS_MAX,
    ROW_STREAMS_TENANT_MAX,
    Threads,
)
from app.http.problems import PROBLEMS, ErrorForm, assembled, error_classes
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.lookups.key_search import KeySearch
from app.infra.files.s3.links import storage_links
from app.infra.settings import Settings
from app.infra.sharing.fair_slots import FairSlots

_log = logging.getLogger(__name__)


def _of_process(process: ApiProcess) -> dict[str, object]:
    settings = process.platform.settings
    return {
        "credentials": process.credentials,
        "threads": process.threads,
        "page_threads": process.page_threads,
        "row_streams": FairSlots(ROW_STREAMS_MAX, party_max=ROW_STREAMS_TENANT_MAX),
        "outbound": Threads(OUTBOUND_THREADS_MAX, party_max=OUTBOUND_TENANT_MAX),
        "in_flight": InFlight(),
        "subscriptions": process.subscriptions,
        "configured_url": settings.public_url,
        "json_body_bytes_max": settings.json_body_bytes_max,
        "storage_links": storage_links(
            settings.storage_uri,
            endpoint=settings.storage_link_url,
            seconds=settings.storage_link_seconds,
            environment=os.environ,
        ),
    }


APIS: Final = (
    FeatureApi(
        name="process",
        routes=(get_liveness, get_readiness),
        providers=http.PROVIDERS,
        dependencies=_of_process,
    ),
    core.API,
    administration.API,
    alerts.API,
    console.API,
    exports.API,
    iceberg.API,
    lineage.API,
    maintenance.API,
    metastore.API,
    monitoring.API,
    objects.API,
    overview.API,
    partitions.API,
    quarantine.API,
    reads.API,
    rendered_files.API,
    retention.API,
    sharing.API,
    sources.API,
    transactions.API,
    verifications.API,
    versions.API,
    views.API,
    webhooks.API,
    writes.API,
)

ROUTES: Final = tuple(route for each in APIS for route in each.routes)
PROTOCOL_ROUTES: Final = tuple(route for each in APIS for route in each.protocol_routes)
"""Routes that the OpenAPI document does not have."""
PROVIDERS: Final[Mapping[str, Provider]] = merged(*(each.providers for each in APIS))
"""What is read from a request, by the name of the parameter that it is provided as."""


STATUSES: Final = assembled((PROBLEMS, *(table for each in APIS for table in each.problems)), error_classes())
"""The HTTP status of each code."""


ERROR_FORMS: Final[Mapping[str, ErrorForm]] = merged(*(each.error_forms for each in APIS))
"""The forms of errors of other protocols, by the first segment of the path."""


def dependencies(process: ApiProcess) -> Mapping[str, object]:
    """What handlers get from the process, by name. Raises ValueError for a name that two features state."""
    trees = merged(*(each.object_trees(process) for each in APIS))
    return merged({"object_trees": trees}, *(each.dependencies(process) for each in APIS))


def schemes(process: ApiProcess) -> Mapping[str, Scheme]:
    """The credentials of other kinds than bearer ones. Raises ValueError for a name that two features state."""
    return merged(*(each.schemes(process) for each in APIS))


def actors(platform: Platform) -> Mapping[ActorKind, ActorStore]:
    """What resolves the credentials of each kind of actor. Raises ValueError for a kind that two features state."""
    keys = CredentialStore(platform.database)
    return merged({ActorKind.KEY: keys, ActorKind.TOKEN: keys}, *(each.actors(platform) for each in APIS))


def resources(platform: Platform) -> Mapping[str, Resource]:
    """What belongs to datasets, by the parameter of its path. See `RequireGrant`. Raises ValueError."""
    return merged(*(each.resources(platform) for each in APIS))


def quota_use(platform: Platform) -> Mapping[str, CountOf]:
    """What a tenant has, by the name of the quota that limits it. Raises ValueError."""
    return merged(*(each.quotas(platform) for each in APIS))


def key_search(platform: Platform) -> KeySearch:
    """Looks up rows by key. A process has one, whose copies of files have one limit."""
    return KeySearch(platform.storage, platform.reader, read_memory(platform), _hot_folder(platform.settings))


def _hot_folder(settings: Settings) -> HotFolder | None:
    """The folder for copies of files in which rows are looked up; None without one, which makes lookups slower."""
    if not settings.hot_bytes_max:
        return None
    try:
        return HotFolder(settings.data_dir / "hot", settings.hot_bytes_max)
    except OSError as error:
        _log.warning("rows are looked up without copies of files: %s", error)
        return None
