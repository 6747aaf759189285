"""Datasets that views read in tests: one with a column of each type, and one to join it with."""

from __future__ import annotations

from typing import Final

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.sql.queries import ViewPlan, bind_view, parse_view


def _dataset(name: str, key: list[str], fields: dict[str, str]) -> DatasetDefinition:
    columns = [CreateField(name=each, type=type_) for each, type_ in fields.items()]
    return define_dataset(CreateDataset(name=name, schema=CreateSchema(fields=columns), record_key=key))


DATASETS: Final = {
    "orders": _dataset(
        "orders",
        ["id"],
        {
            "id": "int64",
            "customer": "string",
            "paid": "boolean",
            "tiny": "int8",
            "small": "int16",
            "n": "int32",
            "byte": "uint8",
            "word": "uint16",
            "long": "uint32",
            "ratio": "float",
            "weight": "double",
            "price": "decimal(9, 2)",
            "fine": "decimal(38, 10)",
            "raw": "binary",
            "day": "date",
            "at": "timestamp",
            "seen": "timestamp(ms)",
            "local": "timestamp_ntz",
            "tags": "list<string>",
            "counts": "map<string, int32>",
            "place": "struct<city: string, at: struct<lat: double, lon: double>>",
        },
    ),
    "eu.customers": _dataset(
        "eu.customers", ["name", "since"], {"name": "string", "since": "date", "vip": "boolean"}
    ),
    "lines": _dataset(
        "lines", [], {"order_id": "int64", "item": "string", "count": "int32", "price": "decimal(9, 2)"}
    ),
    "wide": _dataset("wide", [], {"n": "int32", **{f"c{number}": "int32" for number in range(1_500)}}),
    "odd": _dataset(
        "odd", ["a b"], {"a b": "string", "${env:HOME}": "string", "ticks`": "int32", "Ünï": "int32"}
    ),
}


def planned(sql: str) -> ViewPlan:
    """The plan of a view over these datasets. Raises InvalidView."""
    return bind_view(parse_view(sql), DATASETS, allow_cross_join=True)
