"""Plans of refreshes: whether a view can be refreshed from changes, and the SQL of a refresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from app.features.views.values import ViewDefinition
from app.kernel.codecs.faults import shown
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import InvalidView
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.format.schema.types import INT8, INT16, INT32, INT64
from app.kernel.sql.queries.bind import bind_view
from app.kernel.sql.queries.parse import parse_view
from app.kernel.sql.queries.plan import ViewPlan, to_spark_sql
from app.kernel.sql.queries.relation_types import quoted, relation_type, spark_type, text_literal

_INTEGERS: Final = frozenset(map(spark_type, (INT8, INT16, INT32, INT64)))
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


def fitted_plan(definition: ViewDefinition, inputs: Mapping[str, DatasetDefinition]) -> ViewPlan:
    """The plan of the view for its inputs as they are now. `inputs`: by their names in the SQL.

    If a column that the view reads has a wider type now, the SQL is bound again. The columns of the result keep their
    types: where they would not, the view reads integers and decimals as before, and a value that does not fit then
    fails the refresh. Raises InvalidView if a column is missing, or would be read with loss.
    """
    plan = definition.plan
    _check_columns(plan, inputs)
    changed_columns = [
        (source.name, name, type_, now)
        for source in plan.sources
        for name, type_ in source.columns.items()
        if (now := _relation_type(inputs[source.name], name)) != type_
    ]
    if not changed_columns:
        return plan
    new_plan = _bound_again(definition, inputs)
    if new_plan is not None and _result_types(new_plan) == _result_types(plan):
        return new_plan
    for relation, name, type_, now in changed_columns:
        if _kind_of_number(type_) != _kind_of_number(now) or _kind_of_number(type_) is None:
            raise InvalidView(
                f"the view reads {shown(name)} of {shown(relation)} as {type_}, and the column is of type {now} now, "
                "which changes the columns of the view: register another view",
                pointer="/sql",
                position=None,
                expected=f"the column {shown(name)} of type {type_}",
                column=name,
            )
    return plan


def _check_columns(plan: ViewPlan, inputs: Mapping[str, DatasetDefinition]) -> None:
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


def _bound_again(definition: ViewDefinition, inputs: Mapping[str, DatasetDefinition]) -> ViewPlan | None:
    """The plan of the SQL over the columns that the view reads, which `*` stands for; None if they do not fit."""
    read_inputs = {
        source.name: msgspec.structs.replace(
            inputs[source.name], schema=inputs[source.name].schema.select(list(source.columns))
        )
        for source in definition.plan.sources
    }
    try:
        # The joins were admitted when the view was registered.
        return bind_view(parse_view(definition.sql), read_inputs, allow_cross_join=True)
    except InvalidView:
        return None


def _result_types(plan: ViewPlan) -> list[tuple[str, str]]:
    return [(field.name, field.type) for field in plan.schema.fields]


def _relation_type(dataset: DatasetDefinition, name: str) -> str:
    return spark_type(relation_type(dataset.schema.field(name).data_type()))


def _kind_of_number(type_: str) -> str | None:
    """What a type of Spark has in common with types that it is cast from without loss, or not at all: integers, and
    decimals of one scale.
    """
    if type_ in _INTEGERS:
        return "integer"
    return type_.rpartition(",")[2] if type_.startswith("DECIMAL(") else None


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
