"""Registers the dataset of a source with `create`, with the columns of what the source reads first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from app.core.catalog.errors import DatasetExists
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.values import Dataset
from app.features.sources.ports import Fetched, FetchedBody, Ledger, SourceEnvironment, SourceKind
from app.features.sources.repository.rounds import RoundStore
from app.features.sources.service.fetch import FetchHere
from app.features.sources.transforms import bind_transform
from app.features.sources.values import DataSource, refused_source
from app.infra.files.column_sample import SAMPLE_BYTES_MAX, SampleTooLarge, sample_columns
from app.infra.files.storage import Storage
from app.infra.identifiers import new_id
from app.infra.kafka.errors import SourceFailed
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateTable, schema_of
from app.kernel.format.definition.schema_merge import inferred_types
from app.kernel.format.errors import MalformedBody
from app.kernel.format.operation import Operation
from app.kernel.format.paths import body_path, dataset_prefix
from app.kernel.format.schema.shapes import Shape, common_members

_SAMPLE_ITEMS: Final = 20
# For planning, and for fetching: requests wait for both.
_SAMPLE_SECONDS: Final = 15.0


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

    def run(self, source: DataSource) -> str | None:
        """The id of the dataset; None if there is nothing to read yet.

        Raises SourceUnavailable, SourceFailed, InvalidDataset, InvalidSource, MalformedBody, SchemaMismatch,
        QuotaExceeded.
        """
        create = source.definition.create
        if create is None:
            raise SourceFailed(f"the dataset {source.definition.dataset!r} is not registered")
        types = self._types(source, create)
        if not types:
            return None
        new = create.named(source.definition.dataset, schema_of(types))
        try:
            dataset = self.catalog.create(source.tenant_id, new_id(), define_dataset(new))
        except DatasetExists:
            dataset = self.catalog.get(source.tenant_id, source.definition.dataset)
            check_watermark(create, dataset)
        self.rounds.registered(source, dataset.id)
        return dataset.id

    def _types(self, source: DataSource, create: CreateTable) -> dict[str, str]:
        """The types of the columns by name; empty if there is nothing to read yet."""
        transform = source.definition.transform
        if transform is not None:
            return bind_transform(transform).types
        shapes = self._sample(source)
        return inferred_types(shapes, moments=create.moments) if shapes else {}

    def _sample(self, source: DataSource) -> dict[str, Shape]:
        """The shapes of the columns in the first bodies that can be read; empty without rows."""
        kind = self.kinds[source.definition.kind]
        place = source.place(self.environment_of(source.tenant_id))
        limits = msgspec.structs.replace(
            source.definition.limits, bytes=SAMPLE_BYTES_MAX, items=_SAMPLE_ITEMS, seconds=_SAMPLE_SECONDS
        )
        plan = kind.plan(place, source.position, limits, self.ledger_of(source))
        if plan is None:
            return {}
        # No dataset has this folder yet; files that no job refers to are removed.
        prefix = body_path(dataset_prefix(source.tenant_id, source.id), new_id())
        fetched_parts: list[Fetched] = []
        try:
            is_live = partial(self.rounds.exists, source.tenant_id, source.id)
            fetched_parts = self.here.run(kind, place, plan.parts, limits, prefix, f"{prefix}-bad", is_live)
            bodies = [body for part in fetched_parts for body in part.bodies]
            return self._shapes(bodies, changes=plan.operation is Operation.CHANGELOG)
        finally:
            paths = [body.raw.path for part in fetched_parts for body in part.bodies]
            self.storage.delete(
                [*paths, *(file.path for part in fetched_parts for file in part.quarantine_files)]
            )

    def _shapes(self, bodies: list[FetchedBody], *, changes: bool) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {}
        for body in bodies:
            if body.raw.shapes is not None:
                shapes = common_members(shapes, body.raw.shapes)
                continue
            with suppress(MalformedBody):
                shapes = common_members(shapes, self._columns(body, changes=changes))
        return shapes

    def _columns(self, body: FetchedBody, *, changes: bool) -> dict[str, Shape]:
        """Raises SourceFailed for a text of which a part is of no use."""
        raw = body.raw
        file = self.storage.open(raw.path)
        try:
            sample = sample_columns(raw.format, file, raw.size_bytes, gzip=raw.gzip, changes=changes)
        except SampleTooLarge:
            raise SourceFailed(
                f"{raw.origin} has more than {SAMPLE_BYTES_MAX} bytes, so no columns are inferred from it; register "
                "the dataset first"
            ) from None
        return sample.shapes


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
