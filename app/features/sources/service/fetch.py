"""Fetches the parts of a plan: in tasks, or in this thread, as the kind states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from app.core.jobs.engine import Engine
from app.features.sources.errors import SourcesBusy
from app.features.sources.output import FetchOutput
from app.features.sources.ports import Fetched, Part, Place, RoundLimits, SourceKind
from app.features.sources.tasks import FetchTask
from app.infra.files.storage import Storage
from app.infra.sharing.fair_slots import FairSlots
from app.kernel.format.errors import MalformedBody, RowTooLarge, SchemaMismatch, TooManyRows

OF_A_BODY: Final = (MalformedBody, SchemaMismatch, RowTooLarge, TooManyRows)
"""Faults of one body, for which it is left out if the source quarantines bad records."""


def fetch_slots(slots: int) -> FairSlots:
    """Slots of a worker for rounds that read in threads of writes, of which a tenant holds half at most."""
    return FairSlots(slots, party_max=max(1, slots // 2))


@contextmanager
def fetching(slots: FairSlots, tenant_id: str) -> Iterator[None]:
    """A slot until the context ends. Raises SourcesBusy without a free one, so that the thread goes on to other work:
    what a round reads from may be silent for a minute.
    """
    with slots.slot_if_free(tenant_id) as has_slot:
        if not has_slot:
            raise SourcesBusy("this worker runs as many rounds that read from elsewhere as it may")
        yield


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchHere:
    """Fetches in this thread."""

    storage: Storage

    def run(
        self,
        kind: SourceKind,
        place: Place,
        parts: Sequence[Part],
        limits: RoundLimits,
        prefix: str,
        quarantine: str | None,
        is_live: Callable[[], bool],
    ) -> list[Fetched]:
        """One result per part. `is_live`: whether the round was not cancelled.

        Raises what `SourceKind.fetch` raises, and EngineStopped once the round is not live.
        """
        results = []
        for number, part in enumerate(parts):
            path = f"{prefix}-{number:05d}"
            output = FetchOutput(self.storage, path, _numbered(quarantine, number), is_live)
            with output:
                read = kind.fetch(place, part, limits, output)
            results.append(output.fetched(read))
        return results


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchInTasks:
    """Fetches in tasks of Spark, in parallel."""

    engine: Engine

    def run(
        self,
        kind: str,
        place: Place,
        parts: Sequence[Part],
        limits: RoundLimits,
        prefix: str,
        quarantine: str | None,
        tag: str,
    ) -> list[Fetched]:
        """One result per part. Raises SourceUnavailable, SourceFailed, MalformedBody, StorageFull, EngineStopped."""
        return self.engine.run(
            [
                FetchTask(
                    kind=kind,
                    place=place,
                    part=part,
                    limits=limits,
                    prefix=f"{prefix}-{number:05d}",
                    quarantine=_numbered(quarantine, number),
                )
                for number, part in enumerate(parts)
            ],
            tag,
        )


def _numbered(prefix: str | None, number: int) -> str | None:
    return None if prefix is None else f"{prefix}-{number:05d}"
