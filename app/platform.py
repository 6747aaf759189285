"""What every feature is composed from: the repositories of the core rooms, on one database."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.repository.catalog import CatalogStore
from app.db.session import Database
from app.jobs.repository.jobs import JobStore
from app.timeline.repository.timeline import TimelineStore


@dataclass(frozen=True, kw_only=True, slots=True)
class Stores:
    """The core repositories, which call the other rooms' participants in their transactions."""

    database: Database
    catalog: CatalogStore
    jobs: JobStore
    timeline: TimelineStore
