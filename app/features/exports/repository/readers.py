"""Exports that name columns of their dataset."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from app.core.catalog.impact import ColumnReader, ReaderKind, SchemaStep, delivery_reader
from app.features.exports.tables import exports
from app.features.exports.values import ExportDefinition, ExportState
from app.infra.db.any_of import any_of


class ExportReaders:
    """See `SchemaReaders`."""

    def readers(self, connection: Connection, dataset_id: str, step: SchemaStep) -> Sequence[ColumnReader]:
        """The exports that have not ended, the earliest first."""
        query = (
            select(exports.c.id, exports.c.definition)
            .where(exports.c.dataset_id == dataset_id, exports.c.state != ExportState.ENDED.value)
            .order_by(exports.c.id)
        )
        return [_reader(row.id, row.definition, step) for row in connection.execute(query)]

    def pause(self, connection: Connection, readers: Sequence[ColumnReader]) -> None:
        """Their schedules start no runs."""
        ids = [each.id for each in readers if each.kind is ReaderKind.EXPORT]
        if ids:
            connection.execute(
                update(exports)
                .where(any_of(exports.c.id, ids), exports.c.state == ExportState.ACTIVE.value)
                .values(state=ExportState.PAUSED.value, revision=exports.c.revision + 1)
            )


def _reader(export_id: str, definition: ExportDefinition, step: SchemaStep) -> ColumnReader:
    return delivery_reader(
        ReaderKind.EXPORT,
        export_id,
        definition.name,
        step,
        columns=definition.columns,
        where=definition.where,
        access=definition.access,
    )
