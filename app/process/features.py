"""The features of which every process is composed, and their part in the transactions of the core rooms."""

from __future__ import annotations

from typing import Final

from app.core import compose as core
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.repository.participants import CatalogParticipants
from app.core.jobs.repository.job_ends import JobCancellation
from app.core.jobs.repository.jobs import JobStore
from app.core.platform import Stores
from app.core.timeline.repository.definitions import DefinitionCommits
from app.core.timeline.repository.timeline import TimelineStore
from app.features.alerts import compose as alerts
from app.features.exports import compose as exports
from app.features.lineage import loops as lineage
from app.features.maintenance import compose as maintenance
from app.features.metastore import compose as metastore
from app.features.monitoring import compose as monitoring
from app.features.partitions import compose as partitions
from app.features.reads import compose as reads
from app.features.rendered_files import loops as rendered_files
from app.features.retention import compose as retention
from app.features.sharing import compose as sharing
from app.features.sources import compose as sources
from app.features.verifications import compose as verifications
from app.features.versions import compose as versions
from app.features.views import compose as views
from app.features.webhooks import compose as webhooks
from app.features.writes import compose as writes
from app.infra.db.session import Database

FEATURES: Final = (
    views.FEATURE,
    sources.FEATURE,
    core.FEATURE,
    partitions.FEATURE,
    versions.FEATURE,
    writes.FEATURE,
    exports.FEATURE,
    lineage.FEATURE,
    maintenance.FEATURE,
    metastore.FEATURE,
    monitoring.FEATURE,
    alerts.FEATURE,
    reads.FEATURE,
    rendered_files.FEATURE,
    retention.FEATURE,
    sharing.FEATURE,
    verifications.FEATURE,
    webhooks.FEATURE,
)
"""In the order in which their participants lock rows."""

_PARTICIPANTS: Final = tuple(feature.participants for feature in FEATURES)
# Exactly one feature knows which datasets are derived from which.
[_DERIVATIONS] = (each.derivations for each in _PARTICIPANTS if each.derivations is not None)
CATALOG_PARTICIPANTS: Final = CatalogParticipants(
    history=DefinitionCommits(),
    derivations=_DERIVATIONS,
    deletion=(JobCancellation(), *(each.deletion for each in _PARTICIPANTS if each.deletion is not None)),
    readers=tuple(each.readers for each in _PARTICIPANTS if each.readers is not None),
)
COMMIT_PARTICIPANTS: Final = tuple(each.commit for each in _PARTICIPANTS if each.commit is not None)
FAILURE_PARTICIPANTS: Final = tuple(
    each.failure(CATALOG_PARTICIPANTS) for each in _PARTICIPANTS if each.failure is not None
)


def stores_on(database: Database) -> Stores:
    """The core repositories with their participants."""
    return Stores(
        database=database,
        catalog=CatalogStore(database, CATALOG_PARTICIPANTS),
        jobs=JobStore(database, FAILURE_PARTICIPANTS),
        timeline=TimelineStore(database, COMMIT_PARTICIPANTS),
    )
