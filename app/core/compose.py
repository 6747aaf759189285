"""Composes the use cases of the core rooms: the catalogue, jobs, the feed of changes, consumers and the timeline.

Also those of idempotency keys, which handlers of core rooms use.
"""

from __future__ import annotations

from app.core.catalog.service import Datasets
from app.core.changes.service.feed_starts import FeedStarts
from app.core.changes.service.read_changes import ReadChanges
from app.core.changes.service.read_corrections import ReadCorrections
from app.core.changes.service.read_snapshots import ReadSnapshots
from app.core.consumers.repository.consumers import ConsumerStore
from app.core.consumers.service.consumers import Consumers
from app.core.idempotency.repository import ReplyStore
from app.core.idempotency.service import RunOnce
from app.core.jobs.service.jobs import Jobs
from app.core.platform import Platform
from app.core.timeline.files import TimelineFileStore
from app.core.timeline.repository.archives import TimelineArchiveStore
from app.core.timeline.service.read_timeline import ReadTimeline
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.slices.table_walk import TableWalk


def datasets(platform: Platform) -> Datasets:
    """The use cases of datasets for the API."""
    return Datasets(
        catalog=platform.stores.catalog,
        wake=platform.wake,
        metastore=bool(platform.settings.metastore_uri),
    )


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


def feed_starts(platform: Platform) -> FeedStarts:
    """Where readers of feeds start."""
    return FeedStarts(
        catalog=platform.stores.catalog,
        at_commit=platform.changelog.position_of,
        of_consumer=consumers(platform).position,
    )


def consumers(platform: Platform) -> Consumers:
    """The use cases of consumers for the API."""
    return Consumers(index=consumer_store(platform))


def consumer_store(platform: Platform) -> ConsumerStore:
    """The consumers of feeds."""
    return ConsumerStore(platform.database)


def read_timeline(platform: Platform) -> ReadTimeline:
    """The use cases of timelines for the API."""
    return ReadTimeline(
        timeline=platform.stores.timeline,
        archives=TimelineArchiveStore(platform.database),
        files=TimelineFileStore(platform.storage, platform.reader),
    )


def run_once(platform: Platform) -> RunOnce:
    """Runs a request that creates something once for each idempotency key."""
    return RunOnce(replies=reply_store(platform), wake=platform.wake)


def reply_store(platform: Platform) -> ReplyStore:
    """The replies of such requests."""
    return ReplyStore(platform.database)


def dependencies(platform: Platform) -> dict[str, object]:
    """The use cases of the core rooms, by the names that handlers use."""
    return {
        "datasets": datasets(platform),
        "feed_starts": feed_starts(platform),
        "read_corrections": read_corrections(platform),
        "consumers": consumers(platform),
        "jobs": Jobs(store=platform.stores.jobs, wake=platform.wake),
        "read_timeline": read_timeline(platform),
        "run_once": run_once(platform),
    }
