"""Composes the use cases of the core rooms that features share, and what the core rooms add to every process."""

from __future__ import annotations

from typing import Final

from app.core.changes.service.read_changes import ReadChanges
from app.core.changes.service.read_corrections import ReadCorrections
from app.core.changes.service.read_snapshots import ReadSnapshots
from app.core.consumers.repository.consumers import ConsumerStore
from app.core.consumers.repository.participant import ConsumerParticipant
from app.core.feature.feature import Feature, Participants
from app.core.idempotency.repository import ReplyStore
from app.core.platform import Platform
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.slices.table_walk import TableWalk


def read_changes(platform: Platform) -> ReadChanges:
    """Pages of feeds."""
    return ReadChanges(
        catalog=platform.stores.catalog,
        index=platform.changelog,
        reader=platform.reader,
        bytes_max=platform.settings.page_bytes_max,
    )


def table_walk(platform: Platform, memory: MemoryBudget) -> TableWalk:
    """Walks over the rows of tables. `memory`: of one read."""
    groups = TableReader(platform.storage, platform.reader, memory)
    return TableWalk(groups=groups, bytes_max=platform.settings.page_bytes_max)


def read_memory(platform: Platform) -> MemoryBudget:
    """The memory of a read in this process. What does not fit goes to a folder of its own."""
    settings = platform.settings
    return MemoryBudget(bytes_max=settings.read_memory_bytes, scratch=settings.data_dir / "reads")


def read_snapshots(platform: Platform, walk: TableWalk) -> ReadSnapshots:
    """Pages of feeds, which may begin with the rows of the table."""
    return ReadSnapshots(
        catalog=platform.stores.catalog,
        timeline=platform.stores.timeline,
        leases=platform.leases,
        changes=read_changes(platform),
        walk=walk,
    )


def read_corrections(platform: Platform) -> ReadCorrections:
    """Corrections of feeds."""
    return ReadCorrections(index=platform.changelog, reader=platform.reader)


def consumer_store(platform: Platform) -> ConsumerStore:
    """The consumers of feeds."""
    return ConsumerStore(platform.database)


def reply_store(platform: Platform) -> ReplyStore:
    """The replies of such requests."""
    return ReplyStore(platform.database)


FEATURE: Final[Feature[object]] = Feature(
    name="core", participants=Participants(commit=ConsumerParticipant())
)
