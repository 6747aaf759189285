"""Composes the use cases of writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from app.access.tenants.repository.quotas import QuotaStore
from app.core.jobs.values import JobKind, WriteProcess
from app.core.platform import Platform, row_limits
from app.core.timeline.service.name_winner import NameWinner
from app.features.writes.engine import WriteEngine
from app.features.writes.ports import InputStager
from app.features.writes.repository.creations import CreationStore
from app.features.writes.service.accept import AcceptWrite
from app.features.writes.service.accept_new import AcceptNewDataset
from app.features.writes.service.explain import ExplainWrite
from app.features.writes.service.run import RunWrites
from app.infra.db.deletion_hold import deletions_held
from app.infra.files.lookups.key_search import KeySearch
from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.staged_file import StagedFileStore


def accept_write(platform: Platform) -> AcceptWrite:
    """Accepts writes in the API."""
    return AcceptWrite(
        catalog=platform.stores.catalog,
        jobs=platform.stores.jobs,
        group=platform.group,
        quotas=QuotaStore(platform.database),
        storage=platform.storage,
        staged=StagedFileStore(platform.storage, inline_bytes_max=platform.settings.staged_inline_bytes_max),
        quarantine=QuarantineFileStore(platform.storage),
        winners=NameWinner(timeline=platform.stores.timeline),
        wake=platform.wake,
        inline_bytes_max=platform.settings.inline_bytes_max,
        upload_bytes_max=platform.settings.upload_bytes_max,
        limits=row_limits(platform.settings),
    )


def explain_write(platform: Platform, search: KeySearch) -> ExplainWrite:
    """Explains writes in the API."""
    return ExplainWrite(
        timeline=platform.stores.timeline,
        winners=NameWinner(timeline=platform.stores.timeline),
        search=search,
        limits=row_limits(platform.settings),
    )


def accept_new_dataset(platform: Platform, writes: AcceptWrite) -> AcceptNewDataset:
    """Accepts writes that register their datasets."""
    catalog = platform.stores.catalog
    return AcceptNewDataset(
        catalog=catalog,
        creations=CreationStore(platform.database, catalog.live),
        writes=writes,
        storage=platform.storage,
        wake=platform.wake,
    )


def dependencies(platform: Platform, writes: AcceptWrite, search: KeySearch) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {
        "accept_write": writes,
        "accept_new_dataset": accept_new_dataset(platform, writes),
        "explain_write": explain_write(platform, search),
        "upload_bytes_max": platform.settings.upload_bytes_max,
    }


def run_writes(
    platform: Platform,
    engine: WriteEngine,
    owner: str,
    stagers: Mapping[JobKind, InputStager],
    *,
    process: WriteProcess | None,
    hand_over: Callable[[WriteProcess, str, str], None],
    round_ended: Callable[[], None],
) -> RunWrites:
    """Runs the writes of this process (None: all), which `owner` names."""
    return RunWrites(
        catalog=platform.stores.catalog,
        storage=platform.storage,
        jobs=platform.stores.jobs,
        timeline=platform.stores.timeline,
        deletions_held=partial(deletions_held, platform.database),
        engine=engine,
        stagers=stagers,
        kept=platform.leases,
        announce=platform.wake,
        owner=owner,
        rules=msgspec.structs.replace(platform.claim_rules, process=process),
        heartbeat_seconds=platform.settings.heartbeat_seconds,
        replans_max=platform.settings.replans_max,
        hand_over=hand_over,
        round_ended=round_ended,
        seconds_max=platform.job_seconds_max,
        write_seconds_max=platform.write_seconds_max,
    )
