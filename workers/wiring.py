"""The use cases of a worker process, composed from the features. Part of the composition root, `workers/main.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from app.core.consumers.followers import ConsumerKind, Follower
from app.core.feature.feature import Feature, Worker, merged
from app.core.feature.reconcilers import Reconciler
from app.core.jobs.kinds.declared import STAGED_WRITES, TASKS, for_each
from app.core.jobs.kinds.kind import WriteProcess
from app.core.jobs.service.run_tasks import RunTasks
from app.core.platform import Platform
from app.features.partitions.compose import partitions
from app.features.sources import compose as sources
from app.features.sources.service.due import StartRounds
from app.features.writes import compose as writes
from app.features.writes.service.run import RunWrites
from app.infra.runtime.loops import Loop
from app.process.features import FEATURES
from workers.engine.spark_engine import SparkEngine

SparkWorker: TypeAlias = Worker[SparkEngine]
# The engine has what each of them needs.
_FEATURES: Final[Sequence[Feature[SparkEngine]]] = FEATURES


def _keep(_process: WriteProcess, _tenant_id: str, _dataset_id: str) -> None:
    """Hands nothing over: a use case that runs all writes has no other to leave one to."""


def run_writes(
    worker: SparkWorker,
    *,
    hand_over: Callable[[WriteProcess, str, str], None] = _keep,
    after_round: Callable[[], None] = lambda: None,
) -> RunWrites:
    """The queue of writes, as far as they run in this process.

    `hand_over` is called with a tenant and a dataset whose next write runs in another one, which is named first;
    `after_round` after a round of a source.
    """
    stagers = for_each(STAGED_WRITES, merged(*(feature.stagers(worker) for feature in _FEATURES)))
    return writes.run_writes(worker, stagers, hand_over=hand_over, after_round=after_round)


def start_rounds(worker: SparkWorker) -> StartRounds:
    """The sources that are due."""
    return sources.start_rounds(worker, partitions(worker.platform))


def run_tasks(worker: SparkWorker) -> RunTasks:
    """The queue of tasks."""
    platform = worker.platform
    return RunTasks(
        jobs=platform.stores.jobs,
        handlers=for_each(TASKS, merged(*(feature.tasks(worker) for feature in _FEATURES))),
        engine=worker.engine,
        announce=platform.wake,
        owner=worker.id,
        rules=platform.claim_rules,
        heartbeat_seconds=platform.settings.heartbeat_seconds,
        seconds_max=platform.job_seconds_max,
    )


def follower_handlers(worker: SparkWorker) -> dict[ConsumerKind, Follower]:
    """The processing of new changes, by kind of consumer."""
    return merged(*(feature.followers(worker) for feature in _FEATURES))


def reconcilers(worker: SparkWorker) -> dict[str, Reconciler]:
    """The reconcilers of maintenance policies, by the name under which each stores its state of a dataset."""
    return merged(*(feature.reconcilers(worker) for feature in _FEATURES))


def housekeeping(platform: Platform) -> list[Loop]:
    """The loops that delete what is no longer kept, or sum up what is stored."""
    return [loop for feature in _FEATURES for loop in feature.loops(platform)]
