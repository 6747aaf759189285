"""What a feature adds to every process. Part of it only workers run; none of it needs a framework of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from app.core.catalog.repository.participants import (
    CatalogParticipants,
    DeletionParticipant,
    Derivations,
    SchemaReaders,
)
from app.core.consumers.followers import ConsumerKind, Follower
from app.core.feature.reconcilers import Reconciler
from app.core.feature.stagers import InputStager
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.repository.participants import FailureParticipant
from app.core.jobs.service.run_tasks import TaskHandlers
from app.core.platform import Platform
from app.core.timeline.repository.participants import CommitParticipant
from app.infra.runtime.loops import Loop

_K = TypeVar("_K", bound=str)
_V = TypeVar("_V")
_Engine_co = TypeVar("_Engine_co", covariant=True)
_Engine_contra = TypeVar("_Engine_contra", contravariant=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker(Generic[_Engine_co]):
    """What the use cases of a worker process share."""

    platform: Platform
    engine: _Engine_co
    id: str
    """The owner of the jobs that the process claims."""
    process: WriteProcess | None = None
    """Which writes run in the process; None: all."""

    @property
    def write_threads(self) -> int:
        """The threads of the process in which writes run."""
        settings = self.platform.settings
        own = self.process in (None, WriteProcess.WORKER)
        return settings.worker_threads if own else settings.derived_threads


@dataclass(frozen=True, kw_only=True, slots=True)
class Participants:
    """What a feature does in the transactions of the core rooms. One object may take several parts."""

    commit: CommitParticipant | None = None
    failure: Callable[[CatalogParticipants], FailureParticipant] | None = None
    """Makes the participant in the failure of jobs from those of the catalogue, for one that deletes datasets."""
    deletion: DeletionParticipant | None = None
    derivations: Derivations | None = None
    """Of one feature only."""
    readers: SchemaReaders | None = None
    """What of the feature names columns of a dataset."""


def _nothing(_: object) -> Mapping[Any, Any]:
    return {}


def _no_loops(_: object) -> Sequence[Loop]:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature(Generic[_Engine_contra]):
    """What a feature adds to the processes. A field is a function of the process, called when it starts."""

    name: str
    participants: Participants = Participants()
    tasks: Callable[[Worker[_Engine_contra]], TaskHandlers] = _nothing
    """The kinds of task that it runs."""
    stagers: Callable[[Worker[_Engine_contra]], Mapping[JobKind, InputStager]] = _nothing
    """The kinds of write whose rows it makes when they run."""
    followers: Callable[[Worker[_Engine_contra]], Mapping[ConsumerKind, Follower]] = _nothing
    """The kinds of consumer that it moves."""
    reconcilers: Callable[[Worker[_Engine_contra]], Mapping[str, Reconciler]] = _nothing
    """Its maintenance policies, by the name under which the state of a dataset is stored."""
    loops: Callable[[Platform], Sequence[Loop]] = _no_loops
    """What a worker repeats for all tenants: it deletes what is no longer kept, or sums up what is stored."""


def merged(*parts: Mapping[_K, _V]) -> dict[_K, _V]:
    """All entries of the parts. Raises ValueError for a name that occurs twice."""
    entries: dict[_K, _V] = {}
    for part in parts:
        if twice := sorted(str.__str__(name) for name in entries.keys() & part.keys()):
            raise ValueError(f"names that two features state: {', '.join(twice)}")
        entries.update(part)
    return entries
