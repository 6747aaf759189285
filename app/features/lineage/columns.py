"""Which columns of one node go into which of another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.features.exports.values import ExportDefinition
from app.features.lineage.values import ColumnEdge
from app.features.sources.kinds.changes import ChangesConfig
from app.features.sources.transforms import bind_transform
from app.features.sources.values import SourceDefinition
from app.features.views.values import View
from app.features.webhooks.values import WebhookDefinition, WebhookEvents
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import InvalidRequest, InvalidView
from app.kernel.sql.conditions.row_access import RowAccess
from app.kernel.sql.queries.bind import column_origins
from app.kernel.sql.queries.parse import parse_view


def view_columns(view: View) -> Mapping[str, tuple[ColumnEdge, ...]]:
    """The columns that go into those of the view, by the id of the input; empty if its SQL no longer fits."""
    inputs = {each.relation: each.dataset for each in view.inputs}
    try:
        origins = column_origins(
            parse_view(view.definition.sql), {name: each.definition for name, each in inputs.items()}
        )
    except (InvalidView, KeyError):
        return {}
    return {
        dataset.id: _edges(
            (column, target)
            for target, columns in origins.items()
            for relation, column in columns
            if relation == name
        )
        for name, dataset in inputs.items()
    }


def webhook_columns(
    definition: WebhookDefinition, dataset: DatasetDefinition
) -> tuple[ColumnEdge, ...] | None:
    """The columns whose values a webhook sends; None for one of events."""
    if definition.events is not WebhookEvents.CHANGES:
        return None
    sent = definition.delivery_format
    return _delivered(sent.columns, sent.access, dataset)


def export_columns(definition: ExportDefinition, dataset: DatasetDefinition) -> tuple[ColumnEdge, ...]:
    """The columns whose values an export writes."""
    return _delivered(definition.columns, definition.access, dataset)


def _delivered(
    columns: Sequence[str] | None, access: RowAccess, dataset: DatasetDefinition
) -> tuple[ColumnEdge, ...]:
    names = dataset.schema.names() if columns is None else columns
    return _edges((name, name) for name in names if name not in access.masked)


def taken_columns(definition: SourceDefinition, read: DatasetDefinition) -> tuple[ColumnEdge, ...]:
    """The columns that a source takes from the dataset that it reads."""
    columns = msgspec.convert(definition.config, ChangesConfig).columns or read.schema.names()
    return _edges((name, name) for name in columns)


def written_columns(
    definition: SourceDefinition, read: DatasetDefinition | None
) -> tuple[ColumnEdge, ...] | None:
    """The columns of what a source reads that go into those of its dataset; None if they are not known."""
    if definition.transform is None:
        return None if read is None else taken_columns(definition, read)
    try:
        bound = bind_transform(definition.transform)
    except InvalidRequest:
        return None
    [relation] = bound.plan.sources
    origins = column_origins(parse_view(definition.transform.sql), {relation.name: bound.rows})
    return _edges((column, target) for target, columns in origins.items() for _, column in columns)


def _edges(pairs: Iterable[tuple[str, str]]) -> tuple[ColumnEdge, ...]:
    return tuple(ColumnEdge(origin=origin, target=target) for origin, target in sorted(set(pairs)))
