"""The options of reads and writes. Spark passes each as a text, with its name in lower case."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Final, Literal, TypeVar

import msgspec

from headwater_client.client import Headwater
from headwater_client.models import Operation, Overwrite, QueryType
from headwater_client.transport.driver import credentials
from headwater_client.write_options import WriteOptions

Options = TypeVar("Options", bound="Target")
Reads = TypeVar("Reads", bound="ReadSettings")

# What Spark itself reads, or adds.
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname"})
# What a statement in SQL lacks most likely, since Spark does not pass the options of a table on.
_UNNAMED_READ: Final = (
    "load('orders') or option('dataset', 'orders'). In SQL, create the table without a list of columns: CREATE TABLE t "
    "USING headwater OPTIONS (dataset 'orders'). Of a table with such a list, SELECT … FROM t WITH (dataset = 'orders')"
)
_UNNAMED_TABLE: Final = "CREATE TABLE t USING headwater OPTIONS (dataset 'orders')"
_UNNAMED_WRITE: Final = (
    "save('orders') or option('dataset', 'orders'). In SQL, write INSERT INTO t WITH (dataset = 'orders') …, since "
    "Spark does not pass the options of a table to its writes. Instead of CREATE TABLE … AS SELECT, create the table "
    "with the options dataset, create and fields, and insert into it"
)
_LISTS: Final = frozenset({"columns", "partitions", "record_key", "partition_by", "sort_by"})


class InvalidOption(ValueError):
    """An option is unknown, misses, or has a value that it cannot have."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Which dataset, of which service. `path`: the dataset's name or id, the argument of `load` and `save`, or the
    option `dataset`.

    `url` and `api_key`: by default those of `register`, then HEADWATER_URL and HEADWATER_API_KEY of the driver's JVM.
    `wait_seconds`: how long a job may take.
    """

    path: str
    url: str
    api_key: str
    wait_seconds: int = 3_600

    def __repr__(self) -> str:
        # Without the API key: Spark logs values.
        return f"{type(self).__name__}({self.path!r})"

    def connect(self) -> Headwater:
        """A client."""
        return Headwater(self.url, self.api_key)


class ReadSettings(Target, frozen=True, kw_only=True):
    """Options of a read.

    `query`: `snapshot`, `read_optimized` or `incremental` (see `ReadOptions`), or `changes`. A table is read at
    `version`, `as_of` or `tag`; changed rows after `begin` or `begin_time`, up to `end` or `end_time`; changes from
    `since`, `since_version` or `since_time`, to before `until`. `columns` and `partitions` are separated by commas.
    `meta`: with the five meta columns. `corrected_since`: with the two columns of what has corrected a row since the
    version that is read. `push_filters`: see `FilteringTableReader`. `keep_seconds`: for how long the service keeps the
    version of a data frame. `changes_per_task`: how many changes a task of
    Spark reads. `max_changes_per_trigger`: the limit of a micro-batch.
    """

    query: Literal["snapshot", "read_optimized", "incremental", "changes"] = "snapshot"
    version: int | None = None
    as_of: datetime | None = None
    tag: str | None = None
    begin: int | None = None
    begin_time: datetime | None = None
    end: int | None = None
    end_time: datetime | None = None
    since: int | Literal["earliest", "now"] | None = None
    since_version: int | None = None
    since_time: datetime | None = None
    until: int | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    partitions: tuple[str, ...] | None = None
    meta: bool = False
    corrected_since: bool = False
    push_filters: bool = False
    keep_seconds: int = 3_600
    changes_per_task: int = 200_000
    max_changes_per_trigger: int | None = None

    @property
    def query_type(self) -> QueryType:
        """The query of pages of rows."""
        return "read_optimized" if self.query == "read_optimized" else "snapshot"

    def given(self, *names: str) -> dict[str, Any]:
        """The named options that are set."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class TableSettings(ReadSettings, frozen=True, kw_only=True):
    """Options of a table in Spark's catalogue: those of its reads, and these.

    `create`: registers the dataset if it is missing, with `fields`, `record_key`, `ordering_field` and `partition_by`.
    `fields`: names with types of the service, separated by commas.
    """

    create: bool = False
    fields: str | None = None
    record_key: tuple[str, ...] = ()
    ordering_field: str | None = None
    partition_by: tuple[str, ...] = ()


class WriteSettings(Target, frozen=True, kw_only=True):
    """Options of a write: those of `WriteOptions`, and these.

    `operation`: one of the service's, or `insert_overwrite`, which replaces the partitions of the rows. By default
    `upsert`, or `insert` where the dataset has no key. `save_mode`: `ignore` or `error_if_exists`, which Spark's own
    `mode` does not offer for data sources of its kind. `overwrite_scope`, `overwrite_where`: what mode `overwrite`
    replaces. `writer_id`: the stream that batches are numbered in, by default the id of the streaming query.
    `metadata`: that of the commit, as a JSON object of texts.
    `create`: registers the dataset if it is missing, with `record_key`, `ordering_field` and `partition_by`.
    """

    operation: Operation | Literal["insert_overwrite"] | None = None
    save_mode: Literal["append", "ignore", "error_if_exists"] = "append"
    overwrite_scope: Literal["table", "partitions", "filter"] | None = None
    overwrite_where: str | None = None
    on_error: Literal["fail", "quarantine"] = "fail"
    merge_schema: bool = False
    explicit_cast: bool = False
    drop_duplicates: bool = False
    combine: bool = True
    sort_by: tuple[str, ...] = ()
    order: Literal["arrival", "ordering_field"] | None = None
    tombstone: bool = True
    expected_version: int | None = None
    writer_id: str | None = None
    metadata: dict[str, str] | None = None
    create: bool = False
    record_key: tuple[str, ...] = ()
    ordering_field: str | None = None
    partition_by: tuple[str, ...] = ()

    def resolved(self, *, overwrite: bool, keyed: bool) -> tuple[Operation, WriteOptions]:
        """The operation of the service, and its options. `overwrite`: mode overwrite of Spark. Raises InvalidOption."""
        operation = self.operation or ("upsert" if keyed else "insert")
        replaced: Overwrite | None = None
        if overwrite or operation in ("overwrite", "insert_overwrite"):
            if overwrite and operation in ("delete", "changelog", "delete_partition"):
                raise InvalidOption(f"mode overwrite does not go together with operation {operation}")
            if operation != "snapshot":
                scope = "partitions" if operation == "insert_overwrite" else self.overwrite_scope
                scope = scope or ("filter" if self.overwrite_where is not None else "table")
                operation, replaced = "overwrite", Overwrite(scope=scope, where=self.overwrite_where)
        if operation == "delete_partition":
            raise InvalidOption("operation delete_partition has no rows: use delete_partitions of the client")
        return operation, WriteOptions(  # type: ignore[return-value]
            mode=self.save_mode,
            overwrite=replaced,
            on_error=self.on_error,
            merge_schema=self.merge_schema,
            explicit_cast=self.explicit_cast,
            drop_duplicates=self.drop_duplicates,
            combine=self.combine,
            sort_by=self.sort_by,
            order=self.order,
            tombstone=self.tombstone,
            expected_version=self.expected_version,
            metadata=self.metadata,
        )


def read_settings(options: Mapping[str, str]) -> ReadSettings:
    """The options of a read. Raises InvalidOption."""
    return _consistent(_parsed(options, ReadSettings, _UNNAMED_READ))


def table_settings(options: Mapping[str, str]) -> TableSettings:
    """The options of a table in Spark's catalogue. Raises InvalidOption."""
    settings = _consistent(_parsed(options, TableSettings, _UNNAMED_TABLE))
    if settings.push_filters:
        raise InvalidOption(
            "option push_filters: a statement may use a table twice, and Spark then reads it once, with the filters of "
            "one of them. Set it in a statement that uses the table once: SELECT … FROM t WITH (push_filters = 'true')"
        )
    return settings


def write_settings(options: Mapping[str, str]) -> WriteSettings:
    """The options of a write. Raises InvalidOption."""
    return _parsed(options, WriteSettings, _UNNAMED_WRITE)


def names_dataset(options: Mapping[str, str]) -> bool:
    """Whether the options name a dataset."""
    return bool(options.get("dataset") or options.get("path"))


def _consistent(settings: Reads) -> Reads:
    for name in ("meta", "corrected_since"):
        if getattr(settings, name) and settings.query == "changes":
            raise InvalidOption(f"option {name}: query changes has no such columns; the others have")
    for name in ("changes_per_task", "max_changes_per_trigger"):
        if getattr(settings, name) is not None and getattr(settings, name) < 1:
            raise InvalidOption(f"option {name}: expected a number from 1 on")
    return settings


def _parsed(options: Mapping[str, str], kind: type[Options], unnamed: str) -> Options:
    known = {*kind.__struct_fields__, "dataset"}
    given = {name.lower(): value for name, value in options.items() if name.lower() not in _OF_SPARK}
    unknown = [name for name in given if name not in known]
    if unknown:
        hint = "; those of writes belong to INSERT INTO t WITH (…)" if kind is TableSettings else ""
        raise InvalidOption(f"unknown option {', '.join(unknown)}: expected {', '.join(sorted(known))}{hint}")
    if not names_dataset(given):
        raise InvalidOption(f"name the dataset: {unnamed}")
    if given.get("path") and given.get("dataset", given["path"]) != given["path"]:
        raise InvalidOption(f"one dataset only: path is {given['path']!r}, dataset {given['dataset']!r}")
    given["path"] = given.pop("dataset", "") or given["path"]
    members: dict[str, Any] = {name: _value(name, text) for name, text in given.items()}
    if not {"url", "api_key"} <= members.keys():
        try:
            url, api_key = credentials(os.environ)
        except LookupError as error:
            raise InvalidOption(f"set the options url and api_key; otherwise {error}") from None
        members = {"url": url, "api_key": api_key} | members
    try:
        return msgspec.convert(members, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidOption(f"option: {error}") from None


def _value(name: str, text: str) -> Any:
    if name in _LISTS:
        return [part.strip() for part in text.split(",") if part.strip()]
    if name.endswith("_time") or name == "as_of":
        return _time(name, text)
    return _object(name, text) if name == "metadata" else text


def _object(name: str, text: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError:
        raise InvalidOption(
            f'option {name}: expected a JSON object of texts such as {{"run": "nightly-7"}}, not {text!r}'
        ) from None


def _time(name: str, text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise InvalidOption(
            f"option {name}: expected a time such as 2026-11-21T10:00:00Z, not {text!r}"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)
