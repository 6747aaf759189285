"""Plans of refreshes: whether a view can be refreshed from changes, and the SQL of a refresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from app.kernel.codecs.faults import shown
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import InvalidView
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.sql.queries.plan import ViewPlan, to_spark_sql
from app.kernel.sql.queries.relation_types import quoted, text_literal

_ROWS_PER_KEY: Final = "_hw_rows"


def follows_changes(
    plan: ViewPlan, inputs: Mapping[str, DatasetDefinition], record_key: Sequence[str]
) -> bool:
    """Whether each change of the input results in at most one change of the view.

    This requires that each row results from one row of the input, and that the key of the input is passed on unchanged.
    """
    if not plan.row_by_row:
        return False
    [name] = plan.inputs
    key = inputs[name].record_key
    return (
        bool(key) and set(key) == set(plan.key_columns) and set(plan.key_columns.values()) <= set(record_key)
    )


def check_inputs(plan: ViewPlan, inputs: Mapping[str, DatasetDefinition]) -> None:
    """Raises InvalidView unless the inputs still have the columns that the view reads."""
    for source in plan.sources:
        missing = [name for name in source.columns if name not in inputs[source.name].schema.names()]
        if missing:
            raise InvalidView(
                f"the view reads {', '.join(map(shown, missing))} of {shown(source.name)}, which has no such column "
                "any more: give the column its name back, or register another view",
                pointer="/sql",
                position=None,
                expected=f"the columns {', '.join(map(shown, source.columns))} in {shown(source.name)}",
            )


def changes_sql(plan: ViewPlan, relations: Mapping[str, str]) -> str:
    """The SQL that converts changes of the input to changes of the view, with their ops. `relations`: by input name."""
    return to_spark_sql(plan, relations, carry=(OP_COLUMN,))


def rows_sql(plan: ViewPlan, relations: Mapping[str, str], record_key: Sequence[str]) -> str:
    """The SQL of all rows of the view. It fails if several rows have one key, unless the plan excludes that."""
    rows = to_spark_sql(plan, relations)
    if not record_key or (plan.suggested_key and set(plan.suggested_key) <= set(record_key)):
        return rows
    key = ", ".join(map(quoted, record_key))
    columns = ", ".join(quoted(name) for name in plan.schema.names())
    message = text_literal(f"several rows of the view have the same key ({', '.join(record_key)}), such as ")
    fault = f"concat({message}, to_json(struct({key})))"
    counts_sql = f"SELECT *, count(*) OVER (PARTITION BY {key}) AS {_ROWS_PER_KEY} FROM ({rows})"
    return f"SELECT {columns} FROM ({counts_sql}) WHERE assert_true({_ROWS_PER_KEY} = 1, {fault}) IS NULL"
