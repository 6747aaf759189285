"""Runs the rounds of sources: the input of their writes, and the position that their commits record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from app.access.errors import NotFound
from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.feature.stagers import StagedInput
from app.core.jobs.kinds.write import SOURCE_ROUND, BadItem, RoundResult, SourceRound, WriteRequest
from app.core.jobs.values import Job, NewJob
from app.core.timeline.values import Checkpoint, SourceItem
from app.features.sources.engine import RoundEngine
from app.features.sources.kinds.positions import check_storable
from app.features.sources.ports import (
    Fetched,
    FetchedBody,
    Ledger,
    Place,
    RoundPlan,
    SourceEnvironment,
    SourceKind,
)
from app.features.sources.repository.rounds import RoundStore
from app.features.sources.service.fetch import OF_A_BODY, FetchHere, FetchInTasks, fetching
from app.features.sources.transforms import BoundTransform, bind_transform, transformed
from app.features.sources.values import DataSource, SourceMode
from app.features.writes.engine import DecodedInput
from app.infra.identifiers import new_id, new_instant_id
from app.infra.kafka.errors import SourceFailed
from app.infra.sharing.fair_slots import FairSlots
from app.kernel.commit.write_options import OnError
from app.kernel.commit.write_rules import check_options
from app.kernel.derivation.request import relation_of
from app.kernel.format.errors import Fault
from app.kernel.format.operation import Operation
from app.kernel.format.paths import dataset_prefix, quarantine_prefix

_REJECTED_MAX: Final = 100


def new_round(source: DataSource, dataset_id: str, *, actor: str | None = None) -> NewJob:
    """A round to queue. Its operation is decided when it runs."""
    return NewJob(
        id=new_id(),
        instant_id=new_instant_id(),
        dataset_id=dataset_id,
        request=WriteRequest(
            operation=source.definition.operation or Operation.UPSERT,
            options=source.definition.options,
            round=SourceRound(
                source_id=source.id,
                source=source.name,
                transforms=source.definition.transform is not None,
            ),
        ),
        actor=actor,
    )


class _Round(msgspec.Struct, frozen=True, kw_only=True):
    """A round that reads something."""

    job: Job
    source: DataSource
    place: Place
    plan: RoundPlan
    prefix: str
    tag: str
    transform: BoundTransform | None = None

    def quarantine(self, suffix: str) -> str | None:
        """The prefix of the files of bad records; None if these fail the round."""
        if self.job.write.options.on_error is not OnError.QUARANTINE:
            return None
        place = dataset_prefix(self.job.tenant_id, self.job.dataset_id)
        number = self.prefix.rpartition("-")[2]
        return f"{quarantine_prefix(place, self.job.id, self.job.epoch)}-{number}-{suffix}"

    def checkpoint(self, fetched_parts: Sequence[Fetched], bad_items: Mapping[str, SourceItem]) -> Checkpoint:
        """Where the source is after its parts were read. `bad_items`: items that were left out, by the path of their
        body.
        """
        position = dict(self.plan.position)
        for part in fetched_parts:
            position |= part.position
        check_storable(position)
        items = [item for part in fetched_parts for item in part.items]
        items += [
            bad_items.get(body.raw.path, body.item)
            for part in fetched_parts
            for body in part.bodies
            if body.item
        ]
        # The next round follows at once while there is more to read: that of a source that is read once shows that it
        # has read everything. A source that has nothing of what it announces is not read again at once.
        more = self.plan.more or self.source.definition.mode is SourceMode.ONCE
        progress = bool(items) or position != self.source.position
        return Checkpoint(
            source_id=self.source.id,
            since=self.source.rounds,
            position=position,
            items=tuple(items),
            due_seconds=0.0 if more and progress else self.source.definition.interval_seconds,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRounds:
    """Reads the rows of rounds. `environment_of`: what the operator admits to a tenant."""

    catalog: DatasetLookup
    rounds: RoundStore
    ledger_of: Callable[[DataSource], Ledger]
    kinds: Mapping[str, SourceKind]
    environment_of: Callable[[str], SourceEnvironment]
    here: FetchHere
    slots: FairSlots
    engine: RoundEngine

    def stage(self, job: Job, prefix: str, tag: str) -> StagedInput:
        """See `InputStager.stage`. The position of the source is read here, and compared at the commit.

        Raises SourceUnavailable, SourceFailed, SchemaMismatch, MalformedBody, InvalidRequest, NotFound, StorageFull,
        EngineStopped, SourcesBusy.
        """
        source = self._source(job)
        dataset = self.catalog.get(job.tenant_id, job.dataset_id)
        kind = self.kinds[source.definition.kind]
        if kind.in_task:
            outcome = self._fetched(job, source, dataset, prefix, tag)
        else:
            # Its slot ends before the rows are decoded: that is work of this service.
            with fetching(self.slots, job.tenant_id):
                outcome = self._fetched(job, source, dataset, prefix, tag)
        if isinstance(outcome, StagedInput):
            return outcome
        return self._read(*outcome, dataset)

    def _fetched(
        self, job: Job, source: DataSource, dataset: Dataset, prefix: str, tag: str
    ) -> StagedInput | tuple[_Round, list[Fetched]]:
        """The round and its parts; its result if there is nothing to read."""
        kind = self.kinds[source.definition.kind]
        place = source.place(self.environment_of(source.tenant_id))
        plan = kind.plan(place, source.position, source.definition.limits, self.ledger_of(source))
        if plan is None:
            job = _without_rows(job)
            checkpoint = Checkpoint(
                source_id=source.id,
                since=source.rounds,
                position=source.position,
                due_seconds=source.definition.interval_seconds,
            )
            return StagedInput(job=job, files=(), checkpoint=checkpoint, result=_result(checkpoint))
        job = _decided(job, source, dataset, plan)
        transform = source.definition.transform
        round_ = _Round(
            job=job,
            source=source,
            place=place,
            plan=plan,
            prefix=prefix,
            tag=tag,
            transform=None if transform is None else bind_transform(transform),
        )
        return round_, self._fetch(round_)

    def _source(self, job: Job) -> DataSource:
        request = job.write.round
        if request is None:
            raise TypeError(f"job {job.id} is no round of a source: {job.kind.value}")
        try:
            return self.rounds.get(job.tenant_id, request.source_id)
        except NotFound:
            raise SourceFailed(f"the source {request.source!r} was deleted") from None

    def _read(self, round_: _Round, fetched_parts: Sequence[Fetched], dataset: Dataset) -> StagedInput:
        fresh = self._fresh(round_, [body for part in fetched_parts for body in part.bodies])
        if not fresh and round_.plan.operation is None:
            round_ = msgspec.structs.replace(round_, job=_without_rows(round_.job))
        decoded_input, bad_items = self._decode(round_, dataset, fresh)
        if round_.transform is not None:
            files = transformed(
                self.engine,
                round_.transform,
                decoded_input.files,
                dataset.definition,
                round_.job.write.operation,
                relation=relation_of(round_.job.id, round_.job.epoch),
                prefix=f"{round_.prefix}-t",
                tag=round_.tag,
            )
            decoded_input = msgspec.structs.replace(decoded_input, files=files)
        checkpoint = round_.checkpoint(fetched_parts, bad_items)
        request = _at(round_.job.write, checkpoint.position)
        self.rounds.decide(round_.job.tenant_id, round_.job.claim, request)
        own = tuple(file for part in fetched_parts for file in part.quarantine_files)
        return StagedInput(
            job=round_.job,
            files=decoded_input.files,
            quarantine_files=(*decoded_input.quarantine_files, *own),
            ignored_fields=decoded_input.ignored_fields,
            definition=decoded_input.definition,
            checkpoint=checkpoint,
            result=_result(checkpoint),
        )

    def _fetch(self, round_: _Round) -> list[Fetched]:
        kind, limits = self.kinds[round_.source.definition.kind], round_.source.definition.limits
        prefix, quarantine = f"{round_.prefix}-f", round_.quarantine("f")
        if not kind.in_task:
            is_live = partial(self.rounds.holds, round_.job.tenant_id, round_.job.claim)
            return self.here.run(kind, round_.place, round_.plan.parts, limits, prefix, quarantine, is_live)
        return FetchInTasks(engine=self.engine).run(
            round_.source.definition.kind,
            round_.place,
            round_.plan.parts,
            limits,
            prefix,
            quarantine,
            round_.tag,
        )

    def _fresh(self, round_: _Round, bodies: Sequence[FetchedBody]) -> list[FetchedBody]:
        """The bodies without those whose content was read before under the same name."""
        names = [body.item.name for body in bodies if body.item is not None]
        checksums = self.ledger_of(round_.source).checksums(names) if names else {}
        return [
            body
            for body in bodies
            if body.item is None or body.item.checksum not in checksums.get(body.item.name, set())
        ]

    def _decode(
        self, round_: _Round, dataset: Dataset, bodies: Sequence[FetchedBody]
    ) -> tuple[DecodedInput, dict[str, SourceItem]]:
        """The rows of the bodies, and the items that were left out, by the path of their bodies.

        An item that cannot be decoded at all is left out if the source quarantines bad records.
        """
        remaining, bad_items = list(bodies), dict[str, SourceItem]()
        while remaining:
            try:
                return self._decode_all(round_, dataset, remaining, len(bad_items)), bad_items
            except OF_A_BODY as error:
                bad = next((body for body in remaining if body.raw.origin == error.facts.get("origin")), None)
                keeps = round_.job.write.options.on_error is OnError.QUARANTINE
                if bad is None or bad.item is None or not keeps or len(bad_items) == _REJECTED_MAX:
                    raise
                bad_items[bad.raw.path] = msgspec.structs.replace(bad.item, error=Fault.of(error))
                remaining.remove(bad)
        return DecodedInput(files=()), bad_items

    def _decode_all(
        self, round_: _Round, dataset: Dataset, bodies: Sequence[FetchedBody], attempt: int
    ) -> DecodedInput:
        read = dataset.definition
        return self.engine.decode(
            [body.raw for body in bodies],
            read if round_.transform is None else round_.transform.rows_of(read),
            round_.job.write.operation,
            prefix=f"{round_.prefix}-{attempt}",
            options=round_.job.write.options,
            quarantine=round_.quarantine(str(attempt)),
            tag=round_.tag,
        )


def _without_rows(job: Job) -> Job:
    """The job of a round that has read nothing: as a snapshot, it would delete all rows of the dataset."""
    request = msgspec.structs.replace(job.write, operation=Operation.INSERT)
    return msgspec.structs.replace(job, request=request)


def _decided(job: Job, source: DataSource, dataset: Dataset, plan: RoundPlan) -> Job:
    """The job with the operation and the options of the round. Raises InvalidRequest if they do not fit the dataset."""
    operation = source.definition.operation_on(dataset.definition)
    options = source.definition.options
    if plan.operation is not None:
        operation = plan.operation
        options = msgspec.structs.replace(options, drop_duplicates=False)
    order = plan.order if isinstance(source.definition.order, msgspec.UnsetType) else source.definition.order
    options = msgspec.structs.replace(options, order=order)
    check_options(operation, options, dataset.definition)
    request = msgspec.structs.replace(job.write, operation=operation, options=options)
    return msgspec.structs.replace(job, request=request)


def _at(request: WriteRequest, position: dict[str, object]) -> WriteRequest:
    """The request with the position of the source after the round."""
    if request.round is None:
        raise TypeError("the request is no round of a source")
    return msgspec.structs.replace(request, round=msgspec.structs.replace(request.round, position=position))


def _result(checkpoint: Checkpoint) -> dict[str, Any]:
    """The result of the job of a round."""
    return SOURCE_ROUND.stored(
        RoundResult(
            source_id=checkpoint.source_id,
            round=checkpoint.since + 1,
            position=checkpoint.position,
            items=len(checkpoint.items),
            bad_items=tuple(
                BadItem(name=item.name, detail=item.error.detail)
                for item in checkpoint.items
                if item.error is not None
            ),
        )
    )
