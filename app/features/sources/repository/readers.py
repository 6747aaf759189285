"""Sources that name columns of a dataset: one that they read, or one that they write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from sqlalchemy import Connection, select, update

from app.core.catalog.impact import ColumnBreak, ColumnReader, ReaderKind, SchemaStep, paused_by
from app.core.catalog.tables import datasets
from app.features.sources.kinds.changes import ChangesConfig
from app.features.sources.repository.source_row import select_sources, source_of
from app.features.sources.tables import sources
from app.features.sources.transforms import bind_transform
from app.features.sources.values import DataSource, SourceDefinition, SourceState
from app.kernel.codecs.faults import shown
from app.kernel.format.dataset import DatasetDefinition


class SourceReaders:
    """See `SchemaReaders`. Which columns a source writes is known if it has a transform, or reads a dataset."""

    def readers(self, connection: Connection, dataset_id: str, step: SchemaStep) -> Sequence[ColumnReader]:
        """The sources that read or write the dataset, by name. Those that have finished name nothing any more."""
        query = select_sources().where(sources.c.state != SourceState.FINISHED.value).order_by(sources.c.name)
        readers: list[ColumnReader] = []
        for source in map(source_of, connection.execute(query)):
            read_id = source.definition.config.get("dataset_id")
            if read_id == dataset_id:
                target = _definition(connection, source.dataset_id)
                readers.append(_reading(source, step, target))
            elif source.dataset_id == dataset_id:
                readers.append(_writing(source, step, _definition(connection, read_id)))
        return readers

    def pause(self, connection: Connection, readers: Sequence[ColumnReader]) -> None:
        """They start rounds on request only, and keep their positions."""
        for reader in readers:
            if reader.kind is ReaderKind.SOURCE:
                connection.execute(
                    update(sources)
                    .where(sources.c.id == reader.id, sources.c.state == SourceState.ACTIVE.value)
                    .values(
                        state=SourceState.PAUSED.value,
                        error=paused_by(reader),
                        revision=sources.c.revision + 1,
                    )
                )


def _reading(source: DataSource, step: SchemaStep, target: DatasetDefinition | None) -> ColumnReader:
    """A source of the changes of the dataset."""
    config = msgspec.convert(source.definition.config, ChangesConfig)
    columns, conditions = config.columns or (), () if config.where is None else (config.where,)
    return _reader(
        source,
        columns=step.names(columns, conditions),
        every_column=config.columns is None,
        breaks=step.breaks(columns, conditions) or tuple(_not_taken(source, step, target)),
    )


def _not_taken(
    source: DataSource, step: SchemaStep, target: DatasetDefinition | None
) -> Iterator[ColumnBreak]:
    """The columns that the source would write from now on, and the target does not have."""
    if target is None:
        return
    names = set(target.schema.names())
    before = set(_written(source.definition, step.before) or ())
    for name in sorted(set(_written(source.definition, step.after) or ()) - before - names):
        yield ColumnBreak(
            column=name, detail=f"{shown(name)} is written to {shown(target.name)}, which has no such column"
        )


def _writing(source: DataSource, step: SchemaStep, read: DatasetDefinition | None) -> ColumnReader:
    """A source that writes to the dataset."""
    columns = _written(source.definition, read) or ()
    names = set(step.after.schema.names())
    return _reader(
        source,
        columns=step.names(columns),
        every_column=False,
        breaks=tuple(each for each in step.breaks(columns) if each.column not in names),
    )


def _written(definition: SourceDefinition, read: DatasetDefinition | None) -> Sequence[str] | None:
    """The columns that a source writes and its dataset must have; None if they are not known."""
    if definition.merge_schema:
        return None
    if definition.transform is not None:
        return bind_transform(definition.transform).plan.schema.names()
    if read is None:
        return None
    return msgspec.convert(definition.config, ChangesConfig).columns or read.schema.names()


def _reader(
    source: DataSource, *, columns: tuple[str, ...], every_column: bool, breaks: tuple[ColumnBreak, ...]
) -> ColumnReader:
    return ColumnReader(
        kind=ReaderKind.SOURCE,
        id=source.id,
        name=source.name,
        dataset=source.dataset_name,
        columns=columns,
        every_column=every_column,
        breaks=breaks,
    )


def _definition(connection: Connection, dataset_id: str | None) -> DatasetDefinition | None:
    query = select(datasets.c.definition).where(datasets.c.id == dataset_id, datasets.c.deleted_at.is_(None))
    return None if dataset_id is None else connection.execute(query).scalar_one_or_none()
