"""Tables of Spark's session catalogue that are made by CREATE TABLE … USING headwater OPTIONS (…).

Spark gives the options of that statement to the data source once, for the schema, and neither them nor the name of the
table to reads and writes. So each column of the schema has them as metadata, which Spark stores with the table and
passes to its reads. A write has the columns of its query instead, which may be those of another table: it has to name
its dataset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

from headwater_client.client import Headwater
from headwater_client.models import CreateField, Dataset
from headwater_client.problem import Problem
from headwater_client.spark.new_table import create_dataset, parsed_fields
from headwater_client.spark.options import InvalidOption, TableSettings, Target

_METADATA: Final = "headwater"
_OPTION: Final = "option."
# What creates the dataset, and is of no use to reads.
_OF_CREATION: Final = frozenset({"create", "fields", "record_key", "ordering_field", "partition_by"})


def options_of_statement(properties: Mapping[str, str]) -> dict[str, str] | None:
    """The options of a CREATE TABLE, by the properties of its table; None for the options of another use.

    Raises InvalidOption.
    """
    if "provider" not in properties:
        return None
    if "location" in properties:
        raise InvalidOption("a table has neither location nor path: name the dataset with the option dataset")
    options = {
        name.removeprefix(_OPTION): value for name, value in properties.items() if name.startswith(_OPTION)
    }
    if "api_key" in options:
        raise InvalidOption(
            "option api_key: Spark's catalogue would store the key as text. Give it to the session, by register(spark, "
            "url=…, api_key=…) or by HEADWATER_API_KEY"
        )
    return options


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The columns with the options of reads as metadata."""
    stored = {name: value for name, value in options.items() if name not in _OF_CREATION}
    return StructType(
        [
            StructField(each.name, each.dataType, each.nullable, {**(each.metadata or {}), _METADATA: stored})
            for each in schema.fields
        ]
    )


def stored_options(schema: StructType) -> dict[str, str]:
    """The options of the table that the columns are of; none for the columns of a data frame."""
    return next((dict(each.metadata[_METADATA]) for each in schema.fields if _METADATA in each.metadata), {})


def require_service(settings: Target, url: str | None) -> None:
    """Raises InvalidOption if the table is of another service, which must not get the key of the session."""
    if url is not None and url.rstrip("/") != settings.url.rstrip("/"):
        raise InvalidOption(f"the table is of the service {url}, the session of {settings.url}")


def require_columns(wanted: StructType, found: StructType, path: str) -> None:
    """Raises InvalidOption if the dataset lacks a column, or if a table has another type of it."""
    types = {each.name: each.dataType for each in found.fields}
    of_table = bool(stored_options(wanted))
    other = [
        each.name
        for each in wanted.fields
        if each.name not in types or (of_table and types[each.name] != each.dataType)
    ]
    if other:
        raise InvalidOption(
            f"dataset {path} has no column {', '.join(other)} of this type. A table has the columns that the dataset "
            "had at CREATE TABLE, and ALTER TABLE changes only the table: drop it and create it again"
        )


def require_dataset(headwater: Headwater, settings: TableSettings) -> None:
    """Registers the dataset of a table if it is missing. Raises InvalidOption, Problem."""
    fields = () if settings.fields is None else parsed_fields(settings.fields)
    try:
        dataset = headwater.get_dataset(settings.path)
    except Problem as problem:
        if problem.status != 404:
            raise
        if not settings.create or not fields:
            raise InvalidOption(
                f"there is no dataset {settings.path}: register it by create_dataset of the client or by POST "
                "/datasets, or set the options create 'true', fields 'id int64, note string' and record_key 'id'"
            ) from None
        dataset = create_dataset(headwater, settings, fields)
    _require_definition(dataset, settings, fields)


def _require_definition(dataset: Dataset, settings: TableSettings, fields: tuple[CreateField, ...]) -> None:
    """Raises InvalidOption if the dataset is not what the options describe."""
    columns = {each.name: each.type for each in dataset.schema.fields}
    if fields and {each.name: _plain(each.type) for each in fields} != {
        name: _plain(kind) for name, kind in columns.items()
    }:
        described = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        raise InvalidOption(f"option fields: dataset {settings.path} exists and has the columns {described}")
    for name in ("record_key", "ordering_field", "partition_by"):
        wanted, own = getattr(settings, name), getattr(dataset, name)
        if wanted and wanted != own:
            raise InvalidOption(f"option {name}: dataset {settings.path} exists and has {own!r}")


def _plain(kind: str) -> str:
    return re.sub(r"[\s`]", "", kind).lower()
