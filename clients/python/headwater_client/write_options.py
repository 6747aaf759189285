"""Options of a write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headwater_client.models import ChangeOrder, CreateField, CreateWithRows, OnError, Overwrite, SaveMode


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options of a write; the service determines options that are not set.

    `mode`: what an insert, upsert or bulk_insert does if the dataset already has data. `on_error`: whether bad records
    fail the write or are quarantined. `merge_schema`: new columns are added, and types widened; `explicit_cast`: also
    by a cast. `drop_duplicates`: rows of an insert whose key exists are dropped. `combine`: false requires that an
    insert or bulk_insert stores every row as it was sent, which only datasets without a record key do. `tombstone`:
    false for a delete by key that leaves no tombstones. `order`: whether changes are applied as they arrive, or
    compared by the ordering field. `expected_version`: the write fails unless the dataset is at this version.
    `sort_by`: the columns by which a bulk_insert sorts the rows of each file. `writer_id`, `batch_id`: a numbered batch
    of a stream commits once. `partition_done`: the partitions that the write changes are marked as done with it.
    `metadata`: texts by key, which the job, the timeline and the feed show with the commit.
    `create`: the dataset is registered if there is none of the name, with the columns of the rows.
    """

    mode: SaveMode = "append"
    overwrite: Overwrite | None = None
    on_error: OnError = "fail"
    merge_schema: bool = False
    explicit_cast: bool = False
    drop_duplicates: bool = False
    combine: bool = True
    sort_by: tuple[str, ...] = ()
    order: ChangeOrder | None = None
    tombstone: bool = True
    expected_version: int | None = None
    writer_id: str | None = None
    batch_id: int | None = None
    partition_done: bool = False
    metadata: Mapping[str, str] | None = None
    create: CreateWithRows | None = None

    def members(self) -> dict[str, Any]:
        """The members of a JSON envelope."""
        return dict(msgspec.to_builtins(self))

    def params(self) -> dict[str, str | list[str]]:
        """The query parameters of a raw body. Raises ValueError for fields with a `doc`, or that are not nullable."""
        members = self.members()
        if self.overwrite is not None:
            scope = {"scope": "table", **members.pop("overwrite")}
            members |= {f"overwrite_{name}": value for name, value in scope.items()}
        if self.create is not None:
            created = _given(members.pop("create"))
            if self.create.schema is not None:
                created["schema"] = ",".join(map(_column, self.create.schema.fields))
            members |= {"create": True, **created}
        if self.metadata is not None:
            members["metadata"] = [f"{key}:{value}" for key, value in self.metadata.items()]
        return {name: _text(value) for name, value in members.items()}


def _column(field: CreateField) -> str:
    if field.doc is not None or not field.nullable:
        raise ValueError(
            f"rows that are sent raw state only names and types of columns: {field.name} has a doc or is not nullable; "
            "register the dataset first"
        )
    return f"`{field.name.replace('`', '``')}`:{field.type}"


def _given(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value}


def _text(value: Any) -> str | list[str]:
    match value:
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return [str(each) for each in value]
    return str(value)


DEFAULTS = WriteOptions()
