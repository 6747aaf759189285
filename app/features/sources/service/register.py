"""Registers the dataset of a source with `create`, with the columns of what the source reads first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from app.access.errors import NotFound
from app.core.catalog.errors import DatasetExists
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.service import refuse_derived
from app.core.catalog.values import Dataset
from app.core.timeline.values import SourceItem
from app.features.sources.errors import SourceEmpty
from app.features.sources.kinds.positions import check_storable
from app.features.sources.ports import (
    Fetched,
    KnowsColumns,
    Ledger,
    Place,
    Position,
    RoundPlan,
    SourceEnvironment,
    SourceKind,
)
from app.features.sources.repository.rounds import RoundStore
from app.features.sources.service.fetch import OF_A_BODY, FetchHere
from app.features.sources.transforms import bind_transform
from app.features.sources.values import DataSource, SourceMode, refused_source
from app.infra.files.column_sample import SAMPLE_BYTES_MAX, SampleTooLarge, sample_columns
from app.infra.files.storage import Storage
from app.infra.identifiers import new_id
from app.infra.kafka.errors import SourceFailed
from app.kernel.commit.write_options import OnError
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateTable, schema_of
from app.kernel.format.definition.schema_merge import field_words, inferred_types
from app.kernel.format.errors import (
    HeadwaterError,
    InvalidDataset,
    InvalidRequest,
    MalformedBody,
    SchemaMismatch,
)
from app.kernel.format.operation import Operation
from app.kernel.format.paths import body_path, dataset_prefix
from app.kernel.format.rows.staged import RawInput
from app.kernel.format.schema.shapes import Nulls, Shape, common_members

_SAMPLE_ITEMS: Final = 20
# For planning, and for fetching: requests wait for both.
_SAMPLE_SECONDS: Final = 15.0


class WithoutRows(msgspec.Struct, frozen=True, kw_only=True):
    """What a source has read without a row, so that its dataset is not registered.

    `position`: where it is after that. `ended`: whether there was nothing to read. `more`: whether there is more to
    read at once.
    """

    position: Position
    items: tuple[SourceItem, ...] = ()
    ended: bool = False
    more: bool = False

    def error(self, source: DataSource, kind: SourceKind) -> SourceEmpty:
        """What the source waits for, or why it has ended without a dataset."""
        name = source.dataset_name
        if self.ended and source.definition.mode is SourceMode.ONCE:
            return SourceEmpty(
                f"the source has read everything without {kind.needs}, so the dataset {name!r} is not registered; set "
                "its state to active once there is one, or register the dataset"
            )
        return SourceEmpty(
            f"the source waits for {kind.needs}: the dataset {name!r} is registered with the columns of the first "
            "rows, and there are none yet"
        )


class _Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The shapes of columns. `origins`: what each was read from first, by name, for those that are of bodies."""

    shapes: dict[str, Shape]
    origins: dict[str, str]

    def located(self, error: InvalidRequest, names: Sequence[str]) -> InvalidRequest:
        """The error with the origin of the column at fault, or else that of the first column.

        `names`: those of the fields that pointers such as `/schema/fields/0` count.
        """
        pointer, detail = next(
            ((each["pointer"], each["detail"]) for each in error.facts["errors"]), ("", "")
        )
        steps = pointer.split("/")[2:]
        column = next((name for name in self.origins if detail.startswith(field_words(name))), "")
        if isinstance(error, InvalidDataset) and len(steps) > 1 and steps[1].isdecimal():
            column = names[int(steps[1])] if int(steps[1]) < len(names) else ""
        origin = self.origins.get(column) or next(iter(self.origins.values()), "")
        return error.of_origin(origin) if origin else error


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisterDataset:
    """See the module."""

    catalog: CatalogStore
    rounds: RoundStore
    ledger_of: Callable[[DataSource], Ledger]
    kinds: Mapping[str, SourceKind]
    environment_of: Callable[[str], SourceEnvironment]
    storage: Storage
    here: FetchHere

    def run(self, source: DataSource) -> str | WithoutRows:
        """The id of the dataset, which may have been registered meanwhile.

        Raises SourceUnavailable, SourceFailed, InvalidDataset, InvalidSource, MalformedBody, SchemaMismatch,
        QuotaExceeded, DerivedDataset.
        """
        create = source.definition.create
        if create is None:
            raise SourceFailed(f"the dataset {source.definition.dataset!r} is not registered")
        try:
            dataset = self._registered(source, create)
        except NotFound:
            definition = self._definition(source, create)
            if isinstance(definition, WithoutRows):
                return definition
            try:
                dataset = self.catalog.create(source.tenant_id, new_id(), definition)
            except DatasetExists:
                dataset = self._registered(source, create)
        self.rounds.registered(source, dataset.id)
        return dataset.id

    def _registered(self, source: DataSource, create: CreateTable) -> Dataset:
        """The dataset that was registered by others. Raises NotFound, InvalidSource, DerivedDataset."""
        dataset = self.catalog.get(source.tenant_id, source.definition.dataset)
        refuse_derived(dataset)
        check_watermark(create, dataset)
        return dataset

    def _definition(self, source: DataSource, create: CreateTable) -> DatasetDefinition | WithoutRows:
        name, transform = source.definition.dataset, source.definition.transform
        if transform is not None:
            return define_dataset(create.named(name, schema_of(bind_transform(transform).types)))
        kind = self.kinds[source.definition.kind]
        place = source.place(self.environment_of(source.tenant_id))
        if isinstance(kind, KnowsColumns):
            return define_dataset(create.named(name, kind.columns(place)))
        sample = self._sample(source, kind, place)
        if isinstance(sample, WithoutRows):
            return sample
        required = {*create.record_key, *create.partition_by, *create.moments}
        types: dict[str, str] = {}
        try:
            types = inferred_types(sample.shapes, moments=create.moments, required=required)
            if types:
                return define_dataset(create.named(name, schema_of(types)))
        except (SchemaMismatch, InvalidDataset) as error:
            raise sample.located(error, list(types)) from None
        raise SourceFailed(
            "what is read first has no value, from which a column is inferred; register the dataset first"
        )

    def _sample(self, source: DataSource, kind: SourceKind, place: Place) -> _Sample | WithoutRows:
        """The columns in the first bodies that can be read.

        Raises MalformedBody, SchemaMismatch, RowTooLarge, SourceFailed if none can, or if their rows have no columns.
        """
        limits = msgspec.structs.replace(
            source.definition.limits, bytes=SAMPLE_BYTES_MAX, items=_SAMPLE_ITEMS, seconds=_SAMPLE_SECONDS
        )
        plan = kind.plan(place, source.position, limits, self.ledger_of(source))
        if plan is None:
            return WithoutRows(position=source.position, ended=True)
        # No dataset has this folder yet; files that no job refers to are removed.
        prefix = body_path(dataset_prefix(source.tenant_id, source.id), new_id())
        fetched_parts: list[Fetched] = []
        try:
            is_live = partial(self.rounds.exists, source.tenant_id, source.id)
            fetched_parts = self.here.run(kind, place, plan.parts, limits, prefix, f"{prefix}-bad", is_live)
            outliers = source.definition.on_error is OnError.QUARANTINE
            changes = plan.operation is Operation.CHANGELOG
            sample = self._sampled(fetched_parts, changes=changes, outliers=outliers)
            return sample if sample.shapes else _read_without_rows(plan, fetched_parts)
        finally:
            paths = [body.raw.path for part in fetched_parts for body in part.bodies]
            self.storage.delete(
                [*paths, *(file.path for part in fetched_parts for file in part.quarantine_files)]
            )

    def _sampled(self, fetched_parts: Sequence[Fetched], *, changes: bool, outliers: bool) -> _Sample:
        """The columns; empty without rows. Raises the first fault if there is nothing else."""
        shapes: dict[str, Shape] = {}
        origins: dict[str, str] = {}
        faults: list[HeadwaterError] = []
        for part in fetched_parts:
            shapes = common_members(shapes, part.columns)
            if part.rejection is not None:
                faults.append(MalformedBody(part.rejection))
            for body in part.bodies:
                try:
                    columns = self._columns(body.raw, changes=changes, outliers=outliers)
                except OF_A_BODY as error:
                    faults.append(error.of_origin(body.raw.origin))
                    continue
                if columns is None:
                    faults.append(
                        SourceFailed(
                            f"{body.raw.origin} has rows without a value, from which no columns are inferred; register "
                            "the dataset first"
                        )
                    )
                shapes = common_members(shapes, columns or {})
                origins = dict.fromkeys(columns or (), body.raw.origin) | origins
        if not shapes and faults:
            raise faults[0]
        return _Sample(shapes=shapes, origins=origins)

    def _columns(self, raw: RawInput, *, changes: bool, outliers: bool) -> dict[str, Shape] | None:
        """The shapes of the columns of a body; empty without rows, None for rows without a value.

        Raises SourceFailed for a text of which a part is of no use, MalformedBody, SchemaMismatch, RowTooLarge.
        """
        if raw.shapes is not None:
            return raw.shapes
        file = self.storage.open(raw.path)
        try:
            sample = sample_columns(
                raw.format,
                file,
                raw.size_bytes,
                gzip=raw.gzip,
                changes=changes,
                outliers=outliers,
                strict=True,
            )
        except SampleTooLarge:
            raise SourceFailed(
                f"{raw.origin} has more than {SAMPLE_BYTES_MAX} bytes, so no columns are inferred from it; register "
                "the dataset first"
            ) from None
        if sample.empty:
            return {}
        has_values = any(not isinstance(shape, Nulls) for shape in sample.shapes.values())
        return sample.shapes if has_values else None


def _read_without_rows(plan: RoundPlan, fetched_parts: Sequence[Fetched]) -> WithoutRows:
    position = dict(plan.position)
    for part in fetched_parts:
        position |= part.position
    check_storable(position)
    items = [item for part in fetched_parts for item in part.items]
    items += [body.item for part in fetched_parts for body in part.bodies if body.item]
    return WithoutRows(position=position, items=tuple(items), more=plan.more)


def check_watermark(create: CreateTable | None, dataset: Dataset) -> None:
    """Raises InvalidSource for a watermark that differs from the one of the dataset, which `create` does not change."""
    own = dataset.definition.watermark
    if create is None or create.watermark is None or create.watermark == own:
        return
    has = "without a watermark" if own is None else f"with another watermark, of the field {own.field!r}"
    raise refused_source(
        "/create/watermark",
        f"the dataset {dataset.definition.name!r} is registered already, {has}. The watermark of a dataset is declared "
        "when it is registered, and holds for all that is written to it: leave it out here",
    )
