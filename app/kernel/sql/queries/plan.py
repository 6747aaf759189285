"""The plan of a view: its inputs, its result, and the SQL that an engine runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import Real
from app.kernel.sql.queries.relation_types import quoted, spark_type, text_literal


class ViewInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dataset that a view reads. `columns`: with the types (in Spark's SQL) under which it reads them."""

    name: str
    columns: dict[str, str]


class ViewPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A view that fits the schemas of its inputs.

    `sql`: the query over the relations `in1`, `in2` …, which stand for `sources` in their order; `to_spark_sql`
    replaces them. `schema`: the columns of the result.

    A `row_by_row` view maps each row of its one input to one row or no row, from that row alone. Then `projection` has
    the expressions of the result's columns, and `predicate` is true for input rows that have a row (None: all), both
    over a relation called `s1`. `key_columns` has the name in the result of each key field of the input that is
    unchanged. Such a view can follow its input change by change if all key fields are unchanged and are its record key.

    `suggested_key`: columns that identify the rows of the result and are never null; empty if no such columns are
    known.
    """

    sql: str
    sources: tuple[ViewInput, ...]
    schema: Schema
    row_by_row: bool
    projection: tuple[str, ...] = ()
    predicate: str | None = None
    key_columns: dict[str, str] = {}
    suggested_key: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the datasets that it reads."""
        return tuple(source.name for source in self.sources)


def to_spark_sql(plan: ViewPlan, relations: Mapping[str, str], *, carry: Sequence[str] = ()) -> str:
    """The query for Spark, with each column of the result cast to its declared type.

    The only text of the client in it are names of columns, in backticks, and literals, escaped.

    `relations`: the name of a temporary view for each input, with at least the columns in `ViewInput.columns`. `carry`:
    columns of the relation of a row-by-row view that are appended to those of the result, such as the op of a change.
    Raises ValueError if a column of the input or of the result has such a name, or if a relation is missing.

    The session has ANSI mode and the time zone UTC.
    """
    if carry and not plan.row_by_row:
        raise ValueError("only a row-by-row view carries columns of its input")
    names = {name.casefold() for source in plan.sources for name in source.columns}
    names |= {name.casefold() for name in plan.schema.names()}
    for name in carry:
        if name.casefold() in names:
            raise ValueError(f"{name!r} is already a column of the view")
    missing = [name for name in plan.inputs if name not in relations]
    if missing:
        raise ValueError(f"there is no relation for {', '.join(missing)}")
    if plan.row_by_row:
        values, source = plan.projection, "in1 AS s1"
    else:
        values, source = tuple(f"s.{quoted(name)}" for name in plan.schema.names()), f"({plan.sql}) AS s"
    columns = [
        f"CAST({value} AS {spark_type(field.data_type())}) AS {quoted(field.name)}"
        for value, field in zip(values, plan.schema.fields, strict=True)
    ]
    columns += [f"s1.{quoted(name)} AS {quoted(name)}" for name in carry]
    where = "" if plan.predicate is None else f" WHERE {plan.predicate}"
    query = f"SELECT {', '.join(columns)} FROM {source}{where}"
    return f"{relations_clause(plan, relations, carry)} {_finite(plan.schema, query, carry)}"


def relations_clause(plan: ViewPlan, relations: Mapping[str, str], carry: Sequence[str] = ()) -> str:
    """The WITH that defines the relations of `ViewPlan.sql` with their names and types."""
    parts = []
    for number, source in enumerate(plan.sources, start=1):
        columns = [
            f"CAST({quoted(name)} AS {type_}) AS {quoted(name)}" for name, type_ in source.columns.items()
        ]
        columns += [quoted(name) for name in carry]
        parts.append(f"in{number} AS (SELECT {', '.join(columns)} FROM {quoted(relations[source.name])})")
    return f"WITH {', '.join(parts)}"


def _finite(schema: Schema, query: str, carry: Sequence[str]) -> str:
    """The query, which fails for numbers that are NaN or infinite: no dataset accepts them."""
    if all(not isinstance(field.data_type(), Real) for field in schema.fields):
        return query
    columns = []
    for field in schema.fields:
        name = f"r.{quoted(field.name)}"
        if isinstance(field.data_type(), Real):
            fault = text_literal(f"column {field.name!r} of the result is not a finite number")
            finite = f"{name} IS NULL OR abs({name}) < CAST('Infinity' AS DOUBLE)"
            failure = f"CAST(raise_error({fault}) AS {spark_type(field.data_type())})"
            columns.append(f"CASE WHEN {finite} THEN {name} ELSE {failure} END AS {quoted(field.name)}")
        else:
            columns.append(name)
    columns += [f"r.{quoted(name)}" for name in carry]
    return f"SELECT {', '.join(columns)} FROM ({query}) AS r"
