"""Runs views on an engine over tables of files, and reads what it stages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count

from app.features.views.new_view import CreateView, define_view
from app.features.views.refresh_plan import rows_sql
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import LocalStorage
from app.kernel.derivation.request import DeriveInput, DeriveRequest, FeedInput, TableInput
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.new_dataset import CreateBucket
from app.kernel.format.file_group import ChangelogSegment
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.staged import StagedFile
from app.kernel.sql.queries import ViewPlan, bind_view, parse_view
from tests.support.lake_table import LakeTable, Row
from workers.engine.spark_engine import SparkEngine

_numbers = count(1)


def all_of(table: LakeTable, columns: Sequence[str] | None = None) -> TableInput:
    """All rows of a table as the input of a view."""
    files = sorted(table.files.values(), key=lambda file: (file.added_version, file.path))
    read = table.dataset.schema.names() if columns is None else columns
    return TableInput(dataset=table.dataset, files=tuple(files), columns=tuple(read))


def changes_of(table: LakeTable, since: int, until: int) -> FeedInput:
    """A range of its feed as the input of a view."""
    segments = [
        ChangelogSegment(
            file=file,
            row_count=file.row_count,
            first_offset=first,
            version=version,
            committed_at=datetime.fromtimestamp(version, UTC),
        )
        for version, first, file in table.feed
        if first < until and first + file.row_count > since
    ]
    return FeedInput(
        dataset=table.dataset,
        since=since,
        until=until,
        segments=tuple(segments),
        columns=tuple(table.dataset.schema.names()),
    )


def view_of(plan: ViewPlan, record_key: Sequence[str] = ()) -> DatasetDefinition:
    """The dataset of a view."""
    new = CreateView(
        name="v",
        sql="",
        record_key=list(record_key),
        event_time_field=None,
        bucket=CreateBucket(count=2) if record_key else None,
    )
    return define_view(new, plan, {})


def planned(sql: str, **tables: LakeTable) -> ViewPlan:
    """A view over these tables."""
    inputs = {name: table.dataset for name, table in tables.items()}
    return bind_view(parse_view(sql), inputs, allow_cross_join=True)


def derived(
    engine: SparkEngine, sql: str, record_key: Sequence[str] = (), **tables: LakeTable
) -> tuple[DatasetDefinition, tuple[StagedFile, ...]]:
    """The view, computed again from all rows of its inputs."""
    plan = planned(sql, **tables)
    view = view_of(plan, record_key)
    number = next(_numbers)
    relations = {name: f"rel_{number}_{at}" for at, name in enumerate(tables)}
    inputs: dict[str, DeriveInput] = {
        relations[source.name]: all_of(tables[source.name], list(source.columns)) for source in plan.sources
    }
    text = rows_sql(plan, relations, record_key)
    return view, run(engine, text, inputs, view, Operation.SNAPSHOT)


def run(
    engine: SparkEngine,
    sql: str,
    inputs: dict[str, DeriveInput],
    view: DatasetDefinition,
    operation: Operation,
    tag: str | None = None,
) -> tuple[StagedFile, ...]:
    """What the engine stages."""
    number = next(_numbers)
    request = DeriveRequest(
        sql=sql, inputs=inputs, view=view, operation=operation, prefix=f"derived/{number}"
    )
    return engine.derive(request, tag or f"derive-{number}")


def staged_rows(storage: LocalStorage, view: DatasetDefinition, staged: Sequence[StagedFile]) -> list[Row]:
    """In the order of the write, with their ops."""
    found: list[Row] = []
    for file in staged:
        rows = StagedFileStore(storage).read(file, [batch.index for batch in file.batches], view)
        found += rows.to_pylist()
    found.sort(key=lambda row: row["_hw_row"])
    assert [row.pop("_hw_row") for row in found] == list(range(len(found)))
    return found


def rows_of(storage: LocalStorage, view: DatasetDefinition, staged: Sequence[StagedFile]) -> list[Row]:
    """The rows of a view that is computed again."""
    found = staged_rows(storage, view, staged)
    assert {row.pop(OP_COLUMN) for row in found} <= {Op.APPEND}
    return found


def by_id(rows: Sequence[Row]) -> list[Row]:
    """The rows in the order of their ids."""
    return sorted(rows, key=lambda row: row["id"])
