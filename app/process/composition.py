"""The participants of other rooms in the transactions of the core rooms. Part of every composition root."""

from __future__ import annotations

from typing import Final

from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.repository.participants import CatalogParticipants
from app.core.consumers.repository.participant import ConsumerParticipant
from app.core.jobs.repository.job_ends import JobCancellation
from app.core.jobs.repository.jobs import JobStore
from app.core.platform import Stores
from app.core.timeline.repository.definitions import DefinitionCommits
from app.core.timeline.repository.timeline import TimelineStore
from app.features.partitions.repository.participant import PartitionParticipant
from app.features.sources.repository.participant import SourceParticipant
from app.features.versions.repository.participant import VersionParticipant
from app.features.views.repository.participant import ViewParticipant
from app.features.writes.repository.creations import CreationParticipant
from app.infra.db.session import Database

_VIEWS: Final = ViewParticipant()
_SOURCES: Final = SourceParticipant()
# The order of each tuple is the order in which rows are locked.
COMMIT_PARTICIPANTS: Final = (
    _VIEWS,
    _SOURCES,
    ConsumerParticipant(),
    PartitionParticipant(),
    VersionParticipant(),
)
CATALOG_PARTICIPANTS: Final = CatalogParticipants(
    history=DefinitionCommits(), derivations=_VIEWS, deletion=(JobCancellation(), _VIEWS, _SOURCES)
)
FAILURE_PARTICIPANTS: Final = (_VIEWS, _SOURCES, CreationParticipant(CATALOG_PARTICIPANTS))


def stores_on(database: Database) -> Stores:
    """The core repositories with their participants."""
    return Stores(
        database=database,
        catalog=CatalogStore(database, CATALOG_PARTICIPANTS),
        jobs=JobStore(database, FAILURE_PARTICIPANTS),
        timeline=TimelineStore(database, COMMIT_PARTICIPANTS),
    )
