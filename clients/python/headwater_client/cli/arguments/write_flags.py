"""The flags of a write: how it is done, and the dataset that it registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Group, Parameter

from headwater_client.cli.arguments.names import Flag, Names, Texts
from headwater_client.cli.arguments.schema_text import columns_of
from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.models import (
    ChangeOrder,
    CreateSchema,
    CreateWithRows,
    MergeMode,
    OnError,
    Operation,
    Overwrite,
    SaveMode,
)
from headwater_client.write_options import WriteOptions

_NEW: Final = Group("New dataset", sort_key=10)
_HOW: Final = Group("Write", sort_key=20)
_IN_NEW: Final = Parameter(group=_NEW)
_IN_HOW: Final = Parameter(group=_HOW)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NewDatasetFlags:
    """The dataset that a write registers if there is none of the name."""

    create: Annotated[Flag, _IN_NEW] = False
    """Register the dataset if there is none of the name, with the columns of the rows."""
    key: Annotated[Names, _IN_NEW] = None
    """The fields that identify a row, such as id; without them the dataset is append-only."""
    ordering_field: Annotated[str | None, _IN_NEW] = None
    """Of two rows with one key, the one with the larger value of this field wins."""
    partition_by: Annotated[Names, _IN_NEW] = None
    """The partition fields."""
    schema: Annotated[str | None, _IN_NEW] = None
    """The columns, such as id:int64,price:decimal(9,2); by default those of the rows."""
    merge_mode: Annotated[MergeMode | None, _IN_NEW] = None
    """What happens to rows with one key; by default event_time with an ordering field, else commit_time."""

    def value(self) -> CreateWithRows | None:
        """The dataset; None if none is to be registered. Raises CommandError."""
        if not self.create:
            if self.key or self.ordering_field or self.partition_by or self.schema or self.merge_mode:
                raise CommandError(
                    "--key, --ordering-field, --partition-by, --schema and --merge-mode need --create",
                    ExitCode.USAGE,
                )
            return None
        return CreateWithRows(
            record_key=tuple(self.key or ()),
            ordering_field=self.ordering_field,
            partition_by=tuple(self.partition_by or ()),
            schema=None if self.schema is None else CreateSchema(fields=columns_of(self.schema)),
            merge_mode=self.merge_mode,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WriteFlags:
    """How a write is done."""

    operation: Annotated[Operation | None, _IN_HOW] = None
    """By default upsert, or insert for an append-only dataset."""
    mode: Annotated[SaveMode, _IN_HOW] = "append"
    """What an insert, upsert or bulk_insert does if the dataset has rows."""
    overwrite_where: Annotated[str | None, _IN_HOW] = None
    """With --operation overwrite: replace only the rows that match this filter."""
    on_error: Annotated[OnError, _IN_HOW] = "fail"
    """Whether bad records fail the write, or are quarantined."""
    merge_schema: Annotated[Flag, _IN_HOW] = False
    """Add new columns, and widen types."""
    explicit_cast: Annotated[Flag, _IN_HOW] = False
    """With --merge-schema: also by casts."""
    drop_duplicates: Annotated[Flag, _IN_HOW] = False
    """Drop rows of an insert whose key exists."""
    order: Annotated[ChangeOrder | None, _IN_HOW] = None
    """Of a changelog: apply changes as they arrive, or compare them by the ordering field."""
    partition_done: Annotated[Flag, _IN_HOW] = False
    """Mark the partitions that the write changes as done."""
    expected_version: Annotated[int | None, _IN_HOW] = None
    """Fail unless the dataset is at this version."""
    metadata: Annotated[Texts, _IN_HOW] = None
    """A text of the commit, such as run:nightly-7. May be repeated."""

    def options(self, new: CreateWithRows | None) -> WriteOptions:
        """The options of the client. Raises CommandError."""
        where = self.overwrite_where
        return WriteOptions(
            mode=self.mode,
            overwrite=None if where is None else Overwrite(scope="filter", where=where),
            on_error=self.on_error,
            merge_schema=self.merge_schema,
            explicit_cast=self.explicit_cast,
            drop_duplicates=self.drop_duplicates,
            order=self.order,
            partition_done=self.partition_done,
            expected_version=self.expected_version,
            metadata=None
            if self.metadata is None
            else dict(pair("--metadata", text) for text in self.metadata),
            create=new,
        )


NO_NEW_DATASET: Final = NewDatasetFlags()
WRITE_FLAGS: Final = WriteFlags()


def pair(flag: str, text: str) -> tuple[str, str]:
    """The two sides of a value such as team:sales. Raises CommandError."""
    key, separator, value = text.partition(":")
    if not separator or not key:
        raise CommandError(f"{flag} {text}: expected a name and a value, such as team:sales", ExitCode.USAGE)
    return key, value
