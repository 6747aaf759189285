"""Composes the use cases of writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from app.access.tenants.repository.quotas import QuotaStore
from app.core.feature.feature import Feature, Participants, Worker
from app.core.feature.stagers import InputStager
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.platform import Platform, row_limits
from app.core.timeline.service.name_winner import NameWinner
from app.features.writes.engine import WriteEngine
from app.features.writes.repository import CreationParticipant, CreationStore
from app.features.writes.service.accept import AcceptWrite
from app.features.writes.service.accept_new import AcceptNewDataset
from app.features.writes.service.run import RunWrites
from app.features.writes.service.uploads import Uploads
from app.features.writes.service.write_input import WriteInputs
from app.infra.db.deletion_hold import deletions_held
from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.staged_file import StagedFileStore


def accept_write(platform: Platform) -> AcceptWrite:
    """Accepts writes in the API."""
    settings = platform.settings
    inputs = WriteInputs(
        catalog=platform.stores.catalog,
        storage=platform.storage,
        staged_files=StagedFileStore(platform.storage, inline_bytes_max=settings.staged_inline_bytes_max),
        quarantine=QuarantineFileStore(platform.storage),
        inline_bytes_max=settings.inline_bytes_max,
        upload_bytes_max=settings.upload_bytes_max,
        limits=row_limits(settings),
    )
    return AcceptWrite(
        inputs=inputs,
        jobs=platform.stores.jobs,
        group=platform.group,
        winners=NameWinner(timeline=platform.stores.timeline),
        wake=platform.wake,
    )


def uploads(platform: Platform) -> Uploads:
    """The uploads of datasets."""
    return Uploads(
        catalog=platform.stores.catalog,
        quotas=QuotaStore(platform.database),
        storage=platform.storage,
        upload_bytes_max=platform.settings.upload_bytes_max,
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


def run_writes(
    worker: Worker[WriteEngine],
    stagers: Mapping[JobKind, InputStager],
    *,
    hand_over: Callable[[WriteProcess, str, str], None],
    after_round: Callable[[], None],
) -> RunWrites:
    """Runs the writes of a process. `stagers`: of all features.

    `hand_over` is called with a tenant and a dataset whose next write runs in another one, which is named first;
    `after_round` after a round of a source.
    """
    platform = worker.platform
    return RunWrites(
        catalog=platform.stores.catalog,
        storage=platform.storage,
        jobs=platform.stores.jobs,
        timeline=platform.stores.timeline,
        deletion_hold=partial(deletions_held, platform.database),
        engine=worker.engine,
        stagers=stagers,
        kept_versions=platform.leases,
        announce=platform.wake,
        owner=worker.id,
        rules=msgspec.structs.replace(platform.claim_rules, process=worker.process),
        heartbeat_seconds=platform.settings.heartbeat_seconds,
        replans_max=platform.settings.replans_max,
        hand_over=hand_over,
        after_round=after_round,
        seconds_max=platform.job_seconds_max,
        write_seconds_max=platform.write_seconds_max,
        slice_seconds=platform.slice_seconds(worker.process),
    )


FEATURE: Final[Feature[object]] = Feature(
    name="writes", participants=Participants(failure=CreationParticipant)
)
