"""The selection of an export, as its tasks and their plan need it."""

from __future__ import annotations

from app.core.catalog.values import Dataset
from app.features.exports.tasks import ExportQuery, ExportSpec
from app.features.exports.values import ExportDefinition
from app.kernel.changelog.change_selection import ChangeSelection
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.rows.projection import check_partitions, projection
from app.kernel.sql.conditions.bound_access import bind_access
from app.kernel.sql.conditions.parse import parse_filter


def export_spec(dataset: Dataset, definition: ExportDefinition, at: DatasetDefinition) -> ExportSpec:
    """What is exported of a dataset, under the schema of `at`."""
    return ExportSpec(
        dataset=at,
        query=definition.query,
        format=definition.format,
        form=definition.form,
        columns=definition.columns,
        where=definition.where,
        partitions=definition.partitions,
        access=definition.access,
        target_bytes=definition.target_bytes,
        latest=dataset.definition.schema if definition.query is ExportQuery.SNAPSHOT else None,
    )


def export_selection(spec: ExportSpec) -> ChangeSelection:
    """The selected rows and columns.

    Raises InvalidRequest, InvalidFilter, MaskedColumn, GrantNotApplicable, RestrictedGrant.
    """
    if spec.query is ExportQuery.SNAPSHOT:
        return _of_table(spec)
    return ChangeSelection.of(
        spec.dataset,
        spec.dataset.schema,
        columns=spec.columns,
        where=spec.where,
        partitions=spec.partitions,
        access=spec.access,
    )


def _of_table(spec: ExportSpec) -> ChangeSelection:
    """The selection of rows of the table, which has no rules of a feed."""
    schema = spec.dataset.schema
    bound = bind_access(spec.access, spec.latest or schema, schema)
    check_partitions(spec.dataset, spec.partitions)
    bound.check_partitions(spec.dataset, spec.partitions)
    return ChangeSelection(
        definition=spec.dataset,
        schema=schema,
        shown_schema=projection(schema, spec.columns),
        where=bound.selecting(None if spec.where is None else parse_filter(spec.where, schema)),
        partitions=spec.partitions,
        stored_as=schema,
        access=bound,
    )
