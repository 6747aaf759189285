"""Composes what gathers samples, and what monitoring adds to every process."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Final

from app.core.feature.feature import Feature
from app.core.jobs.repository.processes import POLLS_MISSED_MAX, ProcessStore
from app.core.messaging.announcements import Announcements
from app.core.platform import Platform
from app.features.monitoring.repository.dataset_faults import DatasetFaultStore
from app.features.monitoring.repository.dataset_samples import DatasetSampleStore
from app.features.monitoring.repository.leaders import LeaderStore
from app.features.monitoring.repository.numbers import NumberStore
from app.features.monitoring.service.gather import Gather, SamplePart
from app.features.monitoring.service.processes import ProcessSamples, ServerSamples
from app.features.monitoring.service.sample_datasets import ROUND_SECONDS, SampleDatasets
from app.features.monitoring.values import Sample
from app.infra.files.probe import StorageProbe
from app.infra.runtime.loops import Loop

# What changes slowly is read less often, since it costs more.
_OFTEN: Final = ("jobs", "failed jobs", "consumers", "sources")
_SELDOM_ROUNDS: Final = 4


def _owner() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"


def gather(platform: Platform, listeners: Sequence[Callable[[Sequence[Sample]], None]] = ()) -> Gather:
    """What gathers the samples in this process, while it leads. `listeners`: called with those of each round."""
    settings = platform.settings
    numbers = NumberStore(platform.database).parts()
    processes = ProcessSamples(
        processes=ProcessStore(platform.database), alive_seconds=settings.poll_seconds * POLLS_MISSED_MAX
    )
    servers = ServerSamples(
        probe=StorageProbe(platform.storage), redis=Announcements(settings.redis_url).reachable
    )
    parts = {
        "processes": SamplePart(read=processes.read),
        "servers": SamplePart(read=servers.read),
        **{
            name: SamplePart(read=read, rounds=1 if name in _OFTEN else _SELDOM_ROUNDS)
            for name, read in numbers.items()
        },
    }
    return Gather(
        parts,
        LeaderStore(platform.database),
        _owner(),
        every_seconds=settings.metrics_seconds,
        listeners=listeners,
    )


def sample_datasets(platform: Platform) -> SampleDatasets:
    """Samples datasets, in one of the workers."""
    return SampleDatasets(
        samples=DatasetSampleStore(platform.database),
        leaders=LeaderStore(platform.database),
        owner=_owner(),
    )


def dataset_faults(platform: Platform) -> DatasetFaultStore:
    """What finds datasets with a fault, by metric."""
    return DatasetFaultStore(platform.database)


def _loops(platform: Platform) -> tuple[Loop, ...]:
    return (Loop("samples", sample_datasets(platform).run, every_seconds=ROUND_SECONDS, waits_first=True),)


def leads(platform: Platform, task: str, owner: str, *, lease_seconds: float) -> Callable[[], bool]:
    """A function that says whether the process does a task now that one process does for all. `owner`: names it."""
    store = LeaderStore(platform.database)
    return lambda: store.lead(task, owner, lease_seconds=lease_seconds)


FEATURE: Final[Feature[object]] = Feature(name="monitoring", loops=_loops)
