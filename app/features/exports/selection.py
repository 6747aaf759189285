"""The selection of an export, as its tasks and their plan need it."""

from __future__ import annotations

from app.features.exports.tasks import ExportSpec
from app.kernel.changelog.change_selection import ChangeSelection


def export_selection(spec: ExportSpec) -> ChangeSelection:
    """The selected rows and columns.

    Raises InvalidRequest, InvalidFilter, MaskedColumn, GrantNotApplicable, RestrictedGrant.
    """
    return ChangeSelection.of(
        spec.dataset,
        spec.dataset.schema,
        columns=spec.columns,
        where=spec.where,
        partitions=spec.partitions,
        access=spec.access,
    )
