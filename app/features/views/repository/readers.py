"""Views whose SQL names columns of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, func, select, update

from app.core.catalog.impact import ColumnBreak, ColumnReader, ReaderKind, SchemaStep, paused_by
from app.features.views.refresh_plan import fitted_plan
from app.features.views.repository.views import find_views
from app.features.views.tables import view_inputs, views
from app.features.views.values import View
from app.kernel.format.errors import InvalidView


class ViewReaders:
    """See `SchemaReaders`."""

    def readers(self, connection: Connection, dataset_id: str, step: SchemaStep) -> Sequence[ColumnReader]:
        """The views that read the dataset, by name."""
        of_dataset = select(view_inputs.c.view_id).where(view_inputs.c.dataset_id == dataset_id)
        return [
            _reader(view, dataset_id, step)
            for view in find_views(connection, views.c.dataset_id.in_(of_dataset))
        ]

    def pause(self, connection: Connection, readers: Sequence[ColumnReader]) -> None:
        """They are refreshed on request only; their rows stay as they are."""
        for reader in readers:
            if reader.kind is ReaderKind.VIEW:
                connection.execute(
                    update(views)
                    .where(views.c.dataset_id == reader.id)
                    .values(
                        paused=True,
                        revision=views.c.revision + 1,
                        error=paused_by(reader),
                        failures=1,
                        attempted_at=func.clock_timestamp(),
                    )
                )


def _reader(view: View, dataset_id: str, step: SchemaStep) -> ColumnReader:
    [relation] = [each.relation for each in view.inputs if each.dataset.id == dataset_id]
    [source] = [each for each in view.definition.plan.sources if each.name == relation]
    name = view.dataset.definition.name
    return ColumnReader(
        kind=ReaderKind.VIEW,
        id=view.dataset.id,
        name=name,
        dataset=name,
        columns=step.names(source.columns),
        breaks=step.breaks(source.columns) or tuple(_misfits(view, relation, step)),
    )


def _misfits(view: View, relation: str, step: SchemaStep) -> Iterator[ColumnBreak]:
    """The first column whose type no longer serves the view, if the view could be refreshed before."""
    inputs = {each.relation: each.dataset.definition for each in view.inputs}
    try:
        fitted_plan(view.definition, {**inputs, relation: step.before})
    except InvalidView:
        return
    try:
        fitted_plan(view.definition, {**inputs, relation: step.after})
    except InvalidView as error:
        yield ColumnBreak(column=error.facts["column"], detail=error.detail)
