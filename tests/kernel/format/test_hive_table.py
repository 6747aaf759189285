"""What a dataset is called in Hive."""

from __future__ import annotations

import pytest

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.hive_table import (
    EMPTY_VALUE,
    HiveColumn,
    hive_columns,
    hive_type,
    hive_values,
    values_in_name,
)
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.partition.segments import partition_path
from app.kernel.format.schema.types import parse_type

TYPES = {
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "decimal(12, 3)": "decimal(12,3)",
    "timestamp": "timestamp",
    "timestamp_ntz(ms)": "timestamp",
    "list<uint8>": "array<smallint>",
    "map<string, list<int64>>": "map<string,array<bigint>>",
    "struct<Name: string, `a b`: struct<c: uint32>>": "struct<name:string,a_b:struct<c:bigint>>",
}


def dataset(*partition_by: str, **types: str) -> DatasetDefinition:
    fields = [CreateField(name=name, type=type_) for name, type_ in types.items()]
    return define_dataset(
        CreateDataset(name="d", schema=CreateSchema(fields=fields), partition_by=list(partition_by))
    )


@pytest.mark.parametrize("ours", TYPES)
def test_every_type_has_a_hive_type(ours: str) -> None:
    assert hive_type(parse_type(ours)) == TYPES[ours]


def test_hive_columns_separate_partition_columns() -> None:
    found = hive_columns(
        dataset(
            "country", "day(At)", "n", "x.y", country="string", At="timestamp", n="uint8", x="struct<y: date>"
        )
    )
    assert [(column.name, column.type) for column in found.columns] == [
        ("at", "timestamp"),
        ("x", "struct<y:date>"),
    ]
    assert found.partition_by == (
        HiveColumn(name="country", type="string", comment="country"),
        HiveColumn(name="at_day", type="string", comment="day(At)"),
        HiveColumn(name="n", type="smallint", comment="n"),
        HiveColumn(name="x_y", type="string", comment="x.y"),
    )


def test_names_that_collide_in_hive_are_refused() -> None:
    with pytest.raises(ValueError, match="'at_day' in Hive"):
        hive_columns(dataset("day(at)", at="timestamp", at_day="string"))


@pytest.mark.parametrize("value", ["DE", "a/b=c %", "näïve", "", None, "x" * 500])
def test_partition_values_are_those_of_the_path(value: str | None) -> None:
    partitioned = dataset("day", "country", day="date", country="string")
    path = partition_path(["day", "country"], ["2026-11-22", value])
    day, country = hive_values(partitioned, path)
    assert day == "2026-11-22"
    if not value:
        assert country == ("__HIVE_DEFAULT_PARTITION__" if value is None else EMPTY_VALUE)
    elif len(value) < 200:
        assert country == value
    else:
        assert path.endswith(country)


def test_values_are_read_from_partition_names() -> None:
    name = "country=a%2Fb%3Dc %25/day=2026-11-22/näïve=ü"
    assert values_in_name(name) == ("a/b=c %", "2026-11-22", "ü")
