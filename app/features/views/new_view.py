"""A view as a user registers it, and the definition of its dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from app.kernel.format.dataset import (
    BucketMode,
    ChangelogProducer,
    DatasetDefinition,
    MergeMode,
    TableType,
)
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.dataset_rules import broken_rules
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateSchema,
)
from app.kernel.format.definition.settings import Fault
from app.kernel.format.errors import InvalidDataset
from app.kernel.sql.queries.plan import ViewPlan
from app.kernel.sql.queries.relation_types import quoted


class CreateView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A view to register."""

    name: Annotated[str, msgspec.Meta(examples=["totals"])]
    """Its name, which no other dataset or view has."""
    sql: Annotated[
        str, msgspec.Meta(examples=["SELECT customer, COUNT(*) AS orders FROM orders GROUP BY customer"])
    ]
    """The SELECT over other datasets whose result it has."""
    allow_cross_join: bool = False
    """Whether a join may compare every row of one side with every row of the other."""
    record_key: Annotated[list[str], msgspec.Meta(examples=[["customer"]])] | None = None
    """The columns that identify a row; by default those that the SQL shows to do so, if any."""
    event_time_field: str | msgspec.UnsetType | None = msgspec.UNSET
    """The column with the event time of a row, which the feed has as `event_time`; null for none. By default that of
    the input, if each row is made of one row of the input and has that column unchanged.
    """
    ordering_field: str | None = None
    """The column by which readers of the feed know which row of a key is the later one. Refreshes do not compare
    it.
    """
    partition_by: list[str] = []
    """How its rows are partitioned, as of a dataset."""
    table_type: TableType | None = None
    """How updates are stored; the default is that of a dataset."""
    bucket: CreateBucket | None = None
    """How its rows are split into buckets, as of a dataset."""
    changelog: CreateChangelog = CreateChangelog()
    """How its feed is made and kept, as of a dataset."""


def define_view(
    new: CreateView, plan: ViewPlan, inputs: Mapping[str, DatasetDefinition]
) -> DatasetDefinition:
    """The dataset of a view. Its columns may be null, but for those of the key: so may those of its inputs one day.

    `inputs`: by their names in the SQL. A row is always the one that was computed last, whatever its ordering field:
    otherwise the view would not be the result of its SQL. Raises InvalidDataset with every fault found.
    """
    record_key = list(plan.suggested_key) if new.record_key is None else new.record_key
    dataset = CreateDataset(
        name=new.name,
        schema=CreateSchema(
            fields=[CreateField(name=field.name, type=field.type) for field in plan.schema.fields]
        ),
        record_key=record_key,
        event_time_field=passed_event_time(plan, inputs)
        if new.event_time_field is msgspec.UNSET
        else new.event_time_field,
        ordering_field=new.ordering_field,
        merge_mode=MergeMode.COMMIT_TIME if record_key and new.ordering_field is not None else None,
        partition_by=new.partition_by,
        table_type=new.table_type,
        bucket=new.bucket,
        changelog=new.changelog,
    )
    faults = [*broken_rules(dataset), *_faults(new, plan)]
    if faults:
        raise InvalidDataset.of(faults)
    return define_dataset(dataset)


def passed_event_time(plan: ViewPlan, inputs: Mapping[str, DatasetDefinition]) -> str | None:
    """The column of a row-by-row view that is the event time of its input; None if there is none."""
    if not plan.row_by_row:
        return None
    [name] = plan.inputs
    event_time_field = inputs[name].event_time_field
    if event_time_field is None:
        return None
    unchanged = f"s1.{quoted(event_time_field)}"
    columns = zip(plan.schema.names(), plan.projection, strict=True)
    return next((column for column, value in columns if value == unchanged), None)


def _faults(new: CreateView, plan: ViewPlan) -> Iterator[Fault]:
    for number, name in enumerate(new.record_key or ()):
        if name not in plan.schema.names() and "." in name:
            yield (
                f"/record_key/{number}",
                "the key of a view has whole columns: select the member as a column",
            )
    if new.changelog.producer is not ChangelogProducer.FULL:
        yield "/changelog/producer", "the feed of a view has the changes of its rows: expected 'full'"
    bucket = new.bucket or CreateBucket()
    if bucket.mode is BucketMode.POSTPONE and not bucket.fixed_now:
        yield "/bucket/mode", "rows of a view are seen once they are refreshed, not once they are compacted"
