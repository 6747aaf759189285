"""Composes the use cases of sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from app.core.catalog.repository.participants import Derivations
from app.core.compose import read_changes
from app.core.feature.feature import Feature, Participants, Worker
from app.core.feature.stagers import InputStager
from app.core.jobs.kinds.kind import JobKind
from app.core.platform import Platform
from app.features.sources.engine import RoundEngine
from app.features.sources.kinds.changes import DatasetChanges
from app.features.sources.kinds.http_pages import HttpPages
from app.features.sources.kinds.registry import KINDS
from app.features.sources.kinds.sql_rows import SqlRows
from app.features.sources.ports import EndsPartitions, Ledger, SourceEnvironment, SourceKind
from app.features.sources.repository.participant import SourceParticipant
from app.features.sources.repository.readers import SourceReaders
from app.features.sources.repository.rounds import ItemLedger, RoundStore
from app.features.sources.repository.sources import SourceStore
from app.features.sources.service.due import StartRounds
from app.features.sources.service.fetch import FetchHere, fetch_slots
from app.features.sources.service.register import RegisterDataset
from app.features.sources.service.rounds import RunRounds
from app.features.sources.service.sources import ManageSources, environment
from app.features.sources.values import DataSource


def manage_sources(platform: Platform) -> ManageSources:
    """Sources in the API."""
    return ManageSources(
        sources=source_store(platform),
        kinds=_kinds(platform),
        environment_of=_environment(platform),
        register=_register(platform),
        wake=platform.wake,
    )


def source_store(platform: Platform) -> SourceStore:
    """Sources in Postgres."""
    return SourceStore(platform.database, _derivations(platform))


def round_store(platform: Platform) -> RoundStore:
    """The sources that are due."""
    return RoundStore(platform.database, _derivations(platform))


def start_rounds(worker: Worker[object], partitions: EndsPartitions) -> StartRounds:
    """Starts the rounds of sources that are due. `partitions` ends those of sources that have read everything."""
    platform = worker.platform
    return StartRounds(
        rounds=round_store(platform),
        ledger_of=_ledgers(platform),
        kinds=_kinds(platform),
        environment_of=_environment(platform),
        register=_register(platform),
        partitions=partitions,
        wake=platform.wake,
        owner=worker.id,
    )


def _stagers(worker: Worker[RoundEngine]) -> dict[JobKind, InputStager]:
    platform = worker.platform
    # At least half of the threads of writes are for writes whose rows are here.
    slots = min(platform.settings.source_threads, max(1, worker.write_threads // 2))
    rounds = RunRounds(
        catalog=platform.stores.catalog,
        rounds=round_store(platform),
        ledger_of=_ledgers(platform),
        kinds=_kinds(platform),
        environment_of=_environment(platform),
        here=FetchHere(storage=platform.storage),
        slots=fetch_slots(slots),
        engine=worker.engine,
    )
    return {JobKind.SOURCE_ROUND: rounds}


def _derivations(platform: Platform) -> Derivations:
    return platform.stores.catalog.live.derivations


def _register(platform: Platform) -> RegisterDataset:
    return RegisterDataset(
        catalog=platform.stores.catalog,
        rounds=round_store(platform),
        ledger_of=_ledgers(platform),
        kinds=_kinds(platform),
        environment_of=_environment(platform),
        storage=platform.storage,
        here=FetchHere(storage=platform.storage),
    )


def _kinds(platform: Platform) -> Mapping[str, SourceKind]:
    changes = DatasetChanges(
        catalog=platform.stores.catalog,
        index=platform.changelog,
        read=read_changes(platform),
        at_commit=platform.changelog.position_at_commit,
        behind_seconds=round_store(platform).behind_seconds,
    )
    rows = SqlRows(row_bytes_max=platform.settings.row_bytes_max)
    return {**KINDS, "dataset": changes, "http": HttpPages(), "sql": rows}


def _ledgers(platform: Platform) -> Callable[[DataSource], Ledger]:
    return lambda source: ItemLedger(platform.database, source.tenant_id, source.id)


def _environment(platform: Platform) -> Callable[[str], SourceEnvironment]:
    settings = platform.settings
    return environment(settings.source_roots, settings.source_allow, plain_http=settings.source_http)


_PARTICIPANT: Final = SourceParticipant()
FEATURE: Final = Feature(
    name="sources",
    participants=Participants(
        commit=_PARTICIPANT,
        failure=lambda _: _PARTICIPANT,
        deletion=_PARTICIPANT,
        readers=SourceReaders(),
    ),
    stagers=_stagers,
)
