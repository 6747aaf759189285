"""Due sources: whether there is something to read, and then a round."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from app.features.sources.ports import EndsPartitions, Ledger, Place, SourceEnvironment, SourceKind, SourceLag
from app.features.sources.repository.rounds import RoundStore
from app.features.sources.service.register import RegisterDataset, WithoutRows
from app.features.sources.service.rounds import new_round
from app.features.sources.values import DataSource, SourceMode, SourceState
from app.infra.errors import Unavailable
from app.infra.kafka.errors import SourceUnavailable
from app.kernel.format.errors import Fault, HeadwaterError

_log = logging.getLogger(__name__)
# Longer than the calls of a kind take, which have a limit of a minute each. A source whose worker ended meanwhile is
# due again once other workers notice that, and at the latest after this time.
_LEASE_SECONDS: Final = 150.0


@dataclass(frozen=True, kw_only=True, slots=True)
class StartRounds:
    """The worker's use case: plans the next round of a due source, and queues it if there is something to read.

    `wake` is called after a round was queued. `partitions` ends those of a source that has read everything. `owner`:
    this worker.
    """

    rounds: RoundStore
    ledger_of: Callable[[DataSource], Ledger]
    kinds: Mapping[str, SourceKind]
    environment_of: Callable[[str], SourceEnvironment]
    register: RegisterDataset
    partitions: EndsPartitions
    wake: Callable[[], None]
    owner: str

    def run(self, tenant_id: str, source_id: str) -> bool:
        """Serves one source; always False, since it is due again later."""
        source = self.rounds.claim(tenant_id, source_id, self.owner, _LEASE_SECONDS)
        if source is None:
            return False
        try:
            self._plan(source)
        except Unavailable:
            raise
        except HeadwaterError as error:
            self.rounds.failed(source, Fault.of(error))
        except Exception as error:
            # A fault of the kind: it must stop neither other sources nor its own retries.
            _log.exception("source %s of tenant %s cannot be planned", source.id, source.tenant_id)
            fault = Fault.of(SourceUnavailable(f"the source cannot be read: {type(error).__name__}"))
            self.rounds.failed(source, fault)
        return False

    def _plan(self, source: DataSource) -> None:
        kind = self.kinds[source.definition.kind]
        place = source.place(self.environment_of(source.tenant_id))
        if source.reported_rounds < source.rounds:
            self._report(kind, place, source)
        dataset_id = source.dataset_id or self.register.run(source)
        if isinstance(dataset_id, WithoutRows):
            self._wait(kind, place, source, dataset_id)
            return
        ledger = self.ledger_of(source)
        plan = kind.plan(place, source.position, source.definition.limits, ledger)
        interval = source.definition.interval_seconds
        if plan is None:
            lag = kind.lag(place, source.position, ledger)
            since = source.definition.ends_partitions_since
            if since is not None:
                # Before it is finished: if the worker ends between the two, this is done again, and changes nothing.
                self.partitions.end_changed(source.tenant_id, dataset_id, since)
            self.rounds.settle(source, lag=lag, due_seconds=interval, state=_state_at_end(source))
            return
        unread = self._lag(kind, place, source, ledger)
        if self.rounds.start(source, new_round(source, dataset_id), unread) is not None:
            self.wake()

    def _wait(self, kind: SourceKind, place: Place, source: DataSource, read: WithoutRows) -> None:
        """Ends the claim of a source that has read no row yet: what it has read is not read again."""
        error = Fault.of(read.error(source, kind))
        interval = source.definition.interval_seconds
        if read.ended:
            lag = kind.lag(place, source.position, self.ledger_of(source))
            state = _state_at_end(source)
            self.rounds.settle(source, lag=lag, due_seconds=interval, state=state, error=error)
            return
        progress = bool(read.items) or read.position != source.position
        more = read.more or source.definition.mode is SourceMode.ONCE
        self.rounds.read_without_rows(
            source,
            position=read.position,
            items=read.items,
            due_seconds=0.0 if more and progress else interval,
            error=error,
        )

    def _lag(self, kind: SourceKind, place: Place, source: DataSource, ledger: Ledger) -> SourceLag | None:
        """The lag before a round; None if it cannot be read now: the round needs none."""
        try:
            return kind.lag(place, source.position, ledger)
        except HeadwaterError as error:
            _log.info("the lag of source %s is not known: %s", source.id, error.detail)
            return None

    def _report(self, kind: SourceKind, place: Place, source: DataSource) -> None:
        """Calls the kind after commits. What it does is for monitoring, and may fail."""
        try:
            kind.committed(place, source.position)
        except Exception:
            _log.exception("source %s could not report its position", source.id)
        self.rounds.reported(source)


def _state_at_end(source: DataSource) -> SourceState | None:
    """The state of a source that has read everything; None if it does not change."""
    return SourceState.FINISHED if source.definition.mode is SourceMode.ONCE else None
