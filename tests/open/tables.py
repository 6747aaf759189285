"""Tables with one past each: every type, kind of files, change of a schema, partition and name that engines read."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from tests.open.datasets import Json, OpenDataset, Tenant
from tests.open.values import FLAT, value_of
from tests.support.earlier_layout import earlier_layout

_NESTED: Final = {
    "tags": "list<string>",
    "counts": "map<string, int32>",
    "place": "struct<city: string, at: struct<lat: double, `odd name`: timestamp(ms)>>",
    "stops": "list<struct<day: date, marks: list<decimal(9, 2)>>>",
    "by_day": "map<date, struct<n: uint32, tags: list<uuid>>>",
}
_FEW: Final = {"id": "int64", "name": "string", "n": "int32"}


def _schema(types: dict[str, str]) -> Json:
    return {"fields": [{"name": name, "type": kind} for name, kind in types.items()]}


def _row(dice: random.Random, number: int, types: dict[str, str]) -> Json:
    return {"id": number} | {name: value_of(dice, kind) for name, kind in types.items() if name != "id"}


def _written(tenant: Tenant, name: str, types: dict[str, str], commits: int, **more: Any) -> OpenDataset:
    """Upserts and deletes of random keys."""
    dice = random.Random(name)
    settings = {"record_key": ["id"], "bucket": {"mode": "fixed", "count": 2}, **more}
    dataset = tenant.dataset(name, schema=_schema(types), **settings)
    dataset.upsert(*(_row(dice, number, types) for number in range(60)))
    for commit in range(commits):
        if commit % 3 == 2:
            dataset.delete(*({"id": number} for number in dice.sample(range(60), 5)))
        else:
            dataset.upsert(*(_row(dice, dice.randrange(80), types) for _ in range(12)))
    return dataset


def _flat(tenant: Tenant) -> OpenDataset:
    dataset = _written(tenant, "flat", {"id": "int64", **FLAT}, 7)
    dataset.succeed("tags", name="seventh", version=7)
    return dataset


def _nested(tenant: Tenant) -> OpenDataset:
    return _written(tenant, "nested", {"id": "int64", **_NESTED}, 4)


def _earlier(tenant: Tenant) -> OpenDataset:
    """Files of a release without ids of members and own columns, beside those of this release."""
    types = {"id": "int64", **FLAT, **_NESTED}
    types = {name: kind for name, kind in types.items() if "uint32" not in kind}
    with earlier_layout():
        dataset = _written(tenant, "earlier", types, 3)
    dice = random.Random("later")
    dataset.upsert(*(_row(dice, dice.randrange(80), types) for _ in range(12)))
    with earlier_layout():
        dataset.succeed("compactions")
    return dataset


def _copy_on_write(tenant: Tenant) -> OpenDataset:
    return _written(tenant, "cow", {"id": "int64", **FLAT}, 4, table_type="copy_on_write")


def _compacted(tenant: Tenant) -> OpenDataset:
    dataset = _written(tenant, "compacted", _FEW, 4)
    dataset.succeed("compactions")
    dataset.upsert({"id": 3, "name": "late", "n": 1})
    dataset.succeed("clusterings", columns=["n", "name"])
    dataset.succeed("restores", version=2)
    dataset.succeed("rollbacks")
    return dataset


def _logs(tenant: Tenant) -> OpenDataset:
    dataset = _written(tenant, "logs", _FEW, 3, table_type="merge_on_read", changelog={"producer": "input"})
    dataset.succeed("compactions")
    dataset.upsert({"id": 1, "name": "waits", "n": 5})
    return dataset


def _keyless(tenant: Tenant) -> OpenDataset:
    dataset = tenant.dataset("keyless", schema=_schema({"id": "int64", **FLAT}))
    dice = random.Random("keyless")
    for first in (0, 10, 20):
        rows = [_row(dice, first + number, FLAT) for number in range(10)]
        dataset.succeed("writes", operation="insert", source={"kind": "rows", "rows": rows})
    dataset.succeed("writes", operation="delete", where="id >= 8 AND id < 14")
    return dataset


_PARTITIONS: Final = (
    ["country", "day(at)"], ["country", "truncate(2, name)"], ["bucket(4, name)"], ["year(at)", "flag"],
    ["month(at)", "n"], ["hour(at)"], ["uid", "price"],
)  # fmt: skip


def _parted(tenant: Tenant, number: int) -> OpenDataset:
    """Rows by values with a slash, an equals sign, a blank, a per cent sign and a letter outside of ASCII."""
    types = {
        "id": "int64", "country": "string", "at": "timestamp", "name": "string", "n": "int32", "flag": "boolean",
        "uid": "uuid", "price": "decimal(9, 2)", "note": "string",
    }  # fmt: skip
    schema = _schema(types)
    dataset = tenant.dataset(
        f"parted_{number}", schema=schema, partition_by=_PARTITIONS[number], table_type="copy_on_write"
    )
    dice = random.Random(f"parted {number}")
    countries = ("de", "a/b", "a=b", "a b", "ü%20", "")
    for commit in range(3):
        rows = [
            _row(dice, 100 * commit + each, types)
            | {"country": dice.choice(countries), "n": each % 3}
            | ({} if dice.random() < 0.9 else {"at": None})
            for each in range(12)
        ]
        dataset.succeed("writes", operation="insert", source={"kind": "rows", "rows": rows})
    dataset.succeed("writes", operation="delete", where="n = 1")
    return dataset


def _evolved(tenant: Tenant) -> OpenDataset:
    """Each change of a schema between writes; a name is used again for another type."""
    types = {
        "id": "int64", "kept": "string", "wide": "int32", "tiny": "int8", "real": "float", "price": "decimal(9, 2)",
        "at": "timestamp(ms)", "gone": "string", "u": "uint16", "place": "struct<city: string>",
    }  # fmt: skip
    dataset = tenant.dataset("evolved", schema=_schema(types), record_key=["id"], bucket={"count": 1})
    dice = random.Random("evolved")
    steps: list[list[Json]] = [
        [],
        [{"kind": "add", "field": {"name": "later", "type": "list<int32>"}}],
        [{"kind": "rename", "name": "kept", "to": "Kept Name"}],
        [
            {"kind": "widen", "name": "wide", "type": "int64"},
            {"kind": "widen", "name": "real", "type": "double"},
        ],
        [{"kind": "widen", "name": "price", "type": "decimal(18, 2)"}],
        [
            {"kind": "widen", "name": "at", "type": "timestamp"},
            {"kind": "widen", "name": "u", "type": "int32"},
        ],
        [{"kind": "drop", "name": "gone"}],
        [{"kind": "add", "field": {"name": "gone", "type": "int64"}}],
        [{"kind": "widen", "name": "place", "type": "struct<city: string, zip: int32>"}],
        [{"kind": "widen", "name": "tiny", "type": "int32"}],
    ]
    for number, changes in enumerate(steps):
        if changes:
            dataset.change(*changes)
        fields = dataset.client.get(dataset.path).json()["schema"]["fields"]
        types = {each["name"]: each["type"] for each in fields}
        dataset.upsert(*(_row(dice, 3 * number + each, types) for each in range(6)))
        dataset.delete({"id": 3 * number})
    dataset.succeed("compactions")
    return dataset


def _widened_to_double(tenant: Tenant) -> OpenDataset:
    dataset = tenant.dataset("to_double", schema=_schema({"id": "int64", "n": "int16"}), record_key=["id"])
    dataset.upsert({"id": 1, "n": 5}, {"id": 2, "n": -7})
    dataset.change({"kind": "widen", "name": "n", "type": "double"})
    return dataset


def _empty(tenant: Tenant) -> OpenDataset:
    return tenant.dataset("empty", schema=_schema({**_FEW, **_NESTED}), record_key=["id"])


def _emptied(tenant: Tenant) -> OpenDataset:
    dataset = _written(tenant, "emptied", _FEW, 1)
    dataset.succeed("writes", operation="delete", where="id >= 0")
    return dataset


def _names(tenant: Tenant) -> OpenDataset:
    types = {"id": "int64", "odd name": "string", "dot.ted": "int32", "Ünï": "double", "MixedCase": "string"}
    return _written(tenant, "MixedCase-Name", types, 3)


def _dotted(tenant: Tenant) -> OpenDataset:
    return _written(tenant, "dotted.name", _FEW, 1)


TABLES: Final[dict[str, Callable[[Tenant], OpenDataset]]] = {
    "flat": _flat,
    "earlier": _earlier,
    "nested": _nested,
    "cow": _copy_on_write,
    "compacted": _compacted,
    "logs": _logs,
    "keyless": _keyless,
    "evolved": _evolved,
    "to_double": _widened_to_double,
    "empty": _empty,
    "emptied": _emptied,
    "names": _names,
    "dotted": _dotted,
    **{
        f"parted_{number}": lambda tenant, number=number: _parted(tenant, number)
        for number in range(len(_PARTITIONS))
    },
}
