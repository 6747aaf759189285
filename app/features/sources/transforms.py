"""Transforms of sources: the query over what is read, bound to its columns, and the rows that it makes."""

from __future__ import annotations

import msgspec

from app.features.sources.errors import InvalidSource
from app.features.sources.values import SourceTransform, refused_source
from app.kernel.codecs.arrow.conform import check_columns
from app.kernel.derivation.engine import Derivation
from app.kernel.derivation.request import DeriveRequest, RowsInput
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, schema_of
from app.kernel.format.errors import FieldError, InvalidDataset, InvalidView, SchemaMismatch
from app.kernel.format.operation import Operation, input_schema
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.format.rows.staged import StagedFile
from app.kernel.sql.queries.bind import bind_view
from app.kernel.sql.queries.parse import parse_view
from app.kernel.sql.queries.plan import ViewPlan, to_spark_sql

_RELATION = "source"


class BoundTransform(msgspec.Struct, frozen=True, kw_only=True):
    """A query that fits the columns of what is read. `rows`: these columns, as a dataset without a key."""

    plan: ViewPlan
    rows: DatasetDefinition

    def rows_of(self, dataset: DatasetDefinition) -> DatasetDefinition:
        """What is read for a dataset: changes have its vocabulary."""
        return msgspec.structs.replace(self.rows, changelog=dataset.changelog)

    def check(self, dataset: DatasetDefinition, operation: Operation) -> None:
        """Raises InvalidSource if the dataset does not accept the columns of the result."""
        # The op of a change is carried beside the columns.
        schema = input_schema(Operation.INSERT if operation is Operation.CHANGELOG else operation, dataset)
        try:
            check_columns(self.plan.schema.to_arrow(), schema, "/transform/sql")
        except SchemaMismatch as error:
            errors = [
                FieldError(pointer=each["pointer"], detail=each["detail"]) for each in error.facts["errors"]
            ]
            raise InvalidSource(f"transform/sql: {errors[0].detail}", errors) from error

    @property
    def types(self) -> dict[str, str]:
        """The types of the columns of the result, by name."""
        return {field.name: field.type for field in self.plan.schema.fields}


def bind_transform(transform: SourceTransform) -> BoundTransform:
    """Raises InvalidSource, with the fault in the query or in the columns."""
    rows = _rows(transform)
    try:
        query = parse_view(transform.sql)
        if set(query.inputs) != {_RELATION}:
            raise refused_source(
                "/transform/sql", f"expected a SELECT over {_RELATION}, which is what is read"
            )
        plan = bind_view(query, {_RELATION: rows})
    except InvalidView as error:
        raise refused_source("/transform/sql", error.detail) from error
    if not plan.row_by_row:
        raise refused_source(
            "/transform/sql",
            "expected a SELECT that makes one row or none from each row: register a view for joins, groups, windows "
            "and queries within the query",
        )
    return BoundTransform(plan=plan, rows=rows)


def transformed(
    engine: Derivation,
    bound: BoundTransform,
    files: tuple[StagedFile, ...],
    dataset: DatasetDefinition,
    operation: Operation,
    *,
    relation: str,
    prefix: str,
    tag: str,
) -> tuple[StagedFile, ...]:
    """The rows of `dataset` that the query makes from the staged rows, in their order.

    `relation`: a name that no other attempt uses. `prefix`: of the paths of the staged files.

    Raises DerivationFailed, CorruptFile, StorageFull, EngineStopped.
    """
    if not files:
        return ()
    carry = (OP_COLUMN,) if operation is Operation.CHANGELOG else ()
    [source] = bound.plan.sources
    return engine.derive(
        DeriveRequest(
            sql=to_spark_sql(bound.plan, {_RELATION: relation}, carry=carry),
            inputs={
                relation: RowsInput(
                    dataset=bound.rows_of(dataset),
                    operation=operation,
                    files=files,
                    columns=tuple(source.columns),
                )
            },
            view=dataset,
            operation=operation,
            prefix=prefix,
            columns=tuple(bound.plan.schema.names()),
        ),
        tag,
    )


def _rows(transform: SourceTransform) -> DatasetDefinition:
    try:
        return define_dataset(
            CreateDataset(
                name=_RELATION, schema=schema_of({field.name: field.type for field in transform.fields})
            )
        )
    except InvalidDataset as error:
        errors = [
            FieldError(
                pointer=each["pointer"].replace("/schema/fields", "/transform/fields", 1),
                detail=each["detail"],
            )
            for each in error.facts["errors"]
        ]
        raise InvalidSource(error.detail, errors) from error
