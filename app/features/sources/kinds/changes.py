"""Kind `dataset`: the changes of another dataset of the tenant, in order, each once.

The position is the offset of the next change. Changes are written as they are in the feed (operation `changelog`), or,
with `form: rows`, as the rows that were added or corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from app.access.errors import NotFound
from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.positions import FromTime, FromVersion, resolve_position
from app.core.changes.repository import ChangelogStore
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.features.sources.kinds.configs import checked_config, refused_config
from app.features.sources.ports import (
    Ledger,
    Output,
    Part,
    PartRead,
    Place,
    Position,
    RoundLimits,
    RoundPlan,
    SourceEnvironment,
    SourceLag,
)
from app.infra.kafka.errors import SourceFailed
from app.kernel.codecs.json.encode import encode_changes_json, encode_rows_ndjson
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.definition.new_dataset import CreateField, CreateSchema
from app.kernel.format.errors import FieldError
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from app.kernel.format.rows.formats import Format
from app.kernel.format.schema.schema import Field
from app.kernel.format.schema.shapes import Shape

_PAGE_CHANGES: Final = 50_000
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_ADDED: Final = pa.array([Op.APPEND.value, Op.CORRECT_TO.value], pa.uint8())


class ChangesStart(str, Enum):
    """Where a source of changes starts: with all that the feed has, or after them."""

    EARLIEST = "earliest"
    LATEST = "latest"


class ChangesStartAt(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One of three: the first change of a version or a later one, the first one that was committed at a time or later,
    or the one at an offset.
    """

    version: _Count | None = None
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    offset: _Count | None = None


class ChangesForm(str, Enum):
    """What is written of a change: the change itself, or the row that it has added or corrected."""

    CHANGES = "changes"
    ROWS = "rows"


class ChangesConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The config of a source of changes. `dataset_id`: that of `dataset` when the source was registered."""

    dataset: str
    start: ChangesStart | ChangesStartAt = ChangesStart.EARLIEST
    form: ChangesForm = ChangesForm.CHANGES
    columns: tuple[str, ...] | None = None
    where: str | None = None
    dataset_id: str | None = None

    def query(self, limit: int) -> FeedQuery:
        """The changes that are selected."""
        return FeedQuery(limit=limit, columns=self.columns, where=self.where)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetChanges:
    """See the module. It reads Postgres, so its parts are fetched by workers and not by tasks.

    `at_commit`: the offset of the first change of a commit, by tenant and dataset. `behind_seconds`: the age of the
    first change from an offset on, by tenant and dataset; 0 if there is none.
    """

    catalog: DatasetLookup
    index: ChangelogStore
    read: ReadChanges
    at_commit: Callable[[str, str, FromVersion | FromTime], int]
    behind_seconds: Callable[[str, str, int], float]
    needs: str = "a change"
    secrets: frozenset[str] = frozenset()
    in_task: bool = False

    def checked(self, config: dict[str, Any], environment: SourceEnvironment) -> dict[str, Any]:
        """See `SourceKind.checked`."""
        del environment
        if "dataset_id" in config:
            raise refused_config(
                FieldError(pointer="/config/dataset_id", detail="the service sets this member")
            )
        changes_config = checked_config(config, ChangesConfig)
        if isinstance(changes_config.start, ChangesStartAt):
            starts = [each for each in msgspec.structs.astuple(changes_config.start) if each is not None]
            if len(starts) != 1:
                detail = "expected one of version, time and offset"
                raise refused_config(FieldError(pointer="/config/start", detail=detail))
        complete_config: dict[str, Any] = msgspec.to_builtins(changes_config)
        return complete_config

    def resolved(self, config: dict[str, Any], find: Callable[[str], Dataset]) -> dict[str, Any]:
        """See `ReadsDatasets.resolved`."""
        changes_config = msgspec.convert(config, ChangesConfig)
        dataset = find(changes_config.dataset)
        if dataset.definition.changelog.producer is ChangelogProducer.NONE:
            detail = "the dataset has no feed (changelog.producer is 'none')"
            raise refused_config(FieldError(pointer="/config/dataset", detail=detail))
        # Raises for columns and a condition that do not fit.
        self.read.selection(dataset, changes_config.query(1))
        return {**config, "dataset": dataset.definition.name, "dataset_id": dataset.id}

    def columns(self, place: Place) -> CreateSchema:
        """See `KnowsColumns.columns`."""
        fields = self._fields(*self._dataset(place))
        return CreateSchema(
            fields=[
                CreateField(name=field.name, type=field.type, nullable=field.nullable, doc=field.doc)
                for field in fields
            ]
        )

    def plan(self, place: Place, position: Position, limits: RoundLimits, ledger: Ledger) -> RoundPlan | None:
        """See `SourceKind.plan`."""
        del ledger
        config, dataset = self._dataset(place)
        since = self._since(config, position, dataset)
        head = dataset.next_offset
        operation = Operation.CHANGELOG if config.form is ChangesForm.CHANGES else None
        if since >= head:
            # Where the source starts is stored before there is something to read: otherwise it would start later.
            return None if position else RoundPlan(parts=(), position={"offset": since}, operation=operation)
        return RoundPlan(
            parts=(Part(content={"since": since, "head": head}),),
            position={"offset": since},
            operation=operation,
            more=head - since > limits.rows,
        )

    def fetch(self, place: Place, part: Part, limits: RoundLimits, output: Output) -> PartRead:
        """See `SourceKind.fetch`."""
        config, dataset = self._dataset(place)
        since, head = part.content["since"], part.content["head"]
        position, size_bytes = since, 0
        columns: dict[str, str | Shape] = {}
        origin = f"changes of {config.dataset} from {since} on"
        with output.body(Format.NDJSON, origin, columns=columns) as body:
            while position < head and position - since < limits.rows and size_bytes < limits.bytes:
                remaining_rows = limits.rows - (position - since)
                page = self.read.page(dataset, position, config.query(min(remaining_rows, _PAGE_CHANGES)))
                text = _encoded(page.events.table, config)
                body.write(text)
                size_bytes += len(text)
                position = page.next_since
            # The schema may have changed meanwhile: a page has the columns of the one before or after that.
            for version in (dataset, self._dataset(place)[1]):
                columns.update({field.name: field.type for field in self._fields(config, version)})
        return PartRead(position={"offset": position})

    def lag(self, place: Place, position: Position, ledger: Ledger) -> SourceLag:
        """See `SourceKind.lag`."""
        del ledger
        config, dataset = self._dataset(place)
        since = self._since(config, position, dataset)
        return SourceLag(
            rows=max(0, dataset.next_offset - since),
            seconds=self.behind_seconds(dataset.tenant_id, dataset.id, since),
        )

    def committed(self, place: Place, position: Position) -> None:
        """The position of a source does not keep the feed, so no one else has to know it."""

    def _fields(self, config: ChangesConfig, dataset: Dataset) -> Sequence[Field]:
        """The columns that are selected."""
        return self.read.selection(dataset, config.query(1)).shown_schema.fields

    def _since(self, config: ChangesConfig, position: Position, dataset: Dataset) -> int:
        if position:
            offset = position.get("offset")
            if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
                raise SourceFailed(f'the position {position} has no offset; expected {{"offset": 120}}')
        elif isinstance(config.start, ChangesStart):
            return dataset.earliest_offset if config.start is ChangesStart.EARLIEST else dataset.next_offset
        else:
            offset = self._start(config.start, dataset)
        return resolve_position(offset, self.index.bounds(dataset.tenant_id, dataset.id))

    def _start(self, start: ChangesStartAt, dataset: Dataset) -> int:
        """The offset of a source without a position. Raises OffsetAhead."""
        if start.offset is not None:
            return start.offset
        if start.version is not None:
            return self.at_commit(dataset.tenant_id, dataset.id, FromVersion(start.version))
        if start.time is not None:
            return self.at_commit(dataset.tenant_id, dataset.id, FromTime(start.time))
        raise SourceFailed("the start of the source is not valid: expected one of version, time and offset")

    def _dataset(self, place: Place) -> tuple[ChangesConfig, Dataset]:
        config = msgspec.convert(place.config, ChangesConfig)
        try:
            return config, self.catalog.get(place.tenant_id, config.dataset_id or config.dataset)
        except NotFound:
            raise SourceFailed(f"the dataset {config.dataset!r} was deleted") from None


def _encoded(events: pa.Table, config: ChangesConfig) -> bytes:
    if config.form is ChangesForm.CHANGES:
        return encode_changes_json(events, as_ndjson=True)
    additions = events.filter(pc.is_in(events.column("op"), _ADDED))
    if not additions.num_rows:
        return b""
    rows = additions.column("row").combine_chunks()
    members = rows.flatten() if isinstance(rows, pa.Array) else rows.chunk(0).flatten()
    return encode_rows_ndjson(pa.table(members, names=[field.name for field in rows.type]))
