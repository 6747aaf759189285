"""Binds a parsed view to the schemas of its inputs, which gives its plan."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from app.kernel.codecs.faults import shown
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.queries.bound import BoundQuery, BoundSelect, Environment, InputTable
from app.kernel.sql.queries.coercion import Untyped
from app.kernel.sql.queries.keys import key_of_select, passed_on
from app.kernel.sql.queries.parse import ParsedView
from app.kernel.sql.queries.plan import ViewInput, ViewPlan
from app.kernel.sql.queries.queries import QueryBinder
from app.kernel.sql.queries.relation_types import relation_type, spark_type
from app.kernel.sql.queries.scope import ScopeColumn
from app.kernel.sql.queries.values import Binding, Origins
from app.kernel.sql.syntax import Select, Table


def bind_view(
    view: ParsedView, inputs: Mapping[str, InputTable], *, allow_cross_join: bool = False
) -> ViewPlan:
    """The plan of the view. `inputs` has the definition of each dataset in `parsed.inputs`.

    Raises InvalidView, also for a join without an equality unless `allow_cross_join`.
    """
    query = view.query
    binding, bound, select = _bound(view, inputs, allow_cross_join=allow_cross_join)
    fields = [
        _field(binding, query.at, number, column) for number, column in enumerate(bound.columns, start=1)
    ]
    schema = Schema(id=1, fields=tuple(fields))
    plan = ViewPlan(sql=bound.sql, sources=_sources(view, inputs, binding), schema=schema, row_by_row=False)
    if select is None:
        return plan
    assert isinstance(query, Select)
    if not _is_row_by_row(query, select):
        return replace(plan, suggested_key=key_of_select(query, schema, select, binding))
    [name] = view.inputs
    key_columns = passed_on(inputs[name].record_key, schema, select)
    return replace(
        plan,
        row_by_row=True,
        projection=tuple(value.sql for value in select.values),
        predicate=None if select.where is None else select.where.sql,
        key_columns=key_columns,
        suggested_key=tuple(key_columns.values()) if len(key_columns) == len(inputs[name].record_key) else (),
    )


def column_origins(view: ParsedView, inputs: Mapping[str, InputTable]) -> dict[str, Origins]:
    """The columns of the result, each with the columns of inputs that its values are computed from.

    Columns that only decide which rows there are, such as those of WHERE and ON, are no origins. An origin has the name
    of the input and of its column. Raises InvalidView.
    """
    _, bound, _ = _bound(view, inputs, allow_cross_join=True)
    return {column.name: column.origins for column in bound.columns}


def _bound(
    view: ParsedView, inputs: Mapping[str, InputTable], *, allow_cross_join: bool
) -> tuple[Binding, BoundQuery, BoundSelect | None]:
    """The query of the view, also as a SELECT where it is a single one. Raises InvalidView."""
    binding = Binding(view.text)
    binder = QueryBinder(
        binding, {name: inputs[name] for name in view.inputs}, allow_cross_joins=allow_cross_join
    )
    query = view.query
    if isinstance(query, Select) and not query.common:
        select = binder.select(query, Environment())
        return binding, select.bound, select
    return binding, binder.query(query, Environment()), None


def _field(binding: Binding, at: int, number: int, column: ScopeColumn) -> Field:
    if isinstance(column.type, Untyped):
        reason = f"the type of column {shown(column.name)} is not certain"
        raise binding.at(at, reason, "CAST(NULL AS type)")
    return Field(id=number, name=column.name, type=str(column.type), nullable=column.nullable)


def _sources(view: ParsedView, inputs: Mapping[str, InputTable], binding: Binding) -> tuple[ViewInput, ...]:
    """The inputs with the columns that are read; at least one column, so that there are rows to count."""
    sources = []
    for name in view.inputs:
        fields = inputs[name].schema.fields
        read_fields = [field for field in fields if (name, field.name) in binding.read_columns] or _least(
            inputs[name]
        )
        columns = {field.name: spark_type(relation_type(field.data_type())) for field in read_fields}
        sources.append(ViewInput(name=name, columns=columns))
    return tuple(sources)


def _least(definition: InputTable) -> list[Field]:
    """A column that is always present and cheap to read."""
    fields = [field for field in definition.schema.fields if "${" not in field.name + field.type]
    key = [field for field in fields if field.name in definition.record_key]
    return (key or fields)[:1]


def _is_row_by_row(query: Select, select: BoundSelect) -> bool:
    """Whether the view maps each row of its one input to one row or no row, independently of other rows."""
    values = [*select.values, *([] if select.where is None else [select.where])]
    return (
        isinstance(query.source, Table)
        and not query.distinct
        and select.groups is None
        and query.qualify is None
        and not any(value.windows or value.queries for value in values)
    )
