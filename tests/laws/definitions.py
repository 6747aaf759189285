"""Random definitions of datasets, as they are registered."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

Json = dict[str, Any]
ORDER_TYPES: Final = ("int64", "int64", "decimal(6, 2)", "date", "string")
PARTITIONS: Final = ("a", "b")
DAY: Final = "2026-01-01"
KEEP_SECONDS: Final = (0, 5, 604_800)
_MODES: Final = ("event_time",) * 4 + ("partial",) * 3 + ("aggregate",) * 3 + ("commit_time", "first")
_PRODUCERS: Final = ("full",) * 3 + ("input", "deferred", "none")
_SIZES: Final = {"count": 1, "target_rows": 2, "max_buckets": 3}
_BUCKETS: Final[tuple[Json | None, ...]] = (
    None,
    {"mode": "fixed", "target_rows": 2},
    {"mode": "fixed", "count": 2},
    {"mode": "fixed", "count": 2, "key": ["id"], "function": "mod"},
    {"mode": "dynamic", **_SIZES},
    {"mode": "key_dynamic", **_SIZES},
    {"mode": "key_dynamic", **_SIZES},
    {"mode": "postpone", **_SIZES},
    {"mode": "postpone", "count": 2, "fixed_now": True},
)
_INDEXES: Final = ("bucket", "simple", "bloom", "record")
_GROUPS: Final = (
    {"ordering_field": "seen", "fields": ["name", "tags"]},
    {"ordering_field": "far", "fields": ["n"]},
)
_NUMBERS: Final = ("sum", "min", "max", "count")
_ANY: Final = ("last", "last_non_null", "first")
_FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "seen": (*_NUMBERS, *_ANY),
    "far": ("count", "max", *_ANY),
    "name": ("min", "max", *_ANY),
    "n": ("min", "max", *_ANY),
    "total": ("sum", "sum", "min", "max", *_ANY),
    "tags": ("collect", "collect", *_ANY),
    "marks": _ANY,
    "gone": ("bool_and", "bool_or", *_ANY),
}


def definition(dice: random.Random, is_valid: Callable[[Json], bool], *, shuffled: bool = False) -> Json:
    """A registration without its name. `shuffled`: one where the order of arrival makes no difference."""
    while True:
        found = _definition(dice, shuffled=shuffled)
        if is_valid(found):
            return found


def watermarked(definition: Json, dice: random.Random, is_valid: Callable[[Json], bool]) -> Json:
    """The same definition, with a watermark or without. Rows are of one day, so none is behind it: the cuts of rows
    that are late by a watermark make different tables.
    """
    late = dice.choice(("accept", "quarantine", "drop"))
    found = definition | {"watermark": {"field": "day", "delay_seconds": dice.choice((0, 5)), "late": late}}
    return found if dice.random() < 0.3 and is_valid(found) else definition


def fields_of(order_type: str, total_type: str) -> list[Json]:
    """The columns of every dataset. `ts` orders rows, as a field or as the member of `meta`."""
    types = {
        "p": "string", "id": "int64", "ts": order_type, "meta": f"struct<ts: {order_type}, by: string>",
        "seen": "int64", "far": "int64", "name": "string", "n": "int32", "total": total_type,
        "tags": "list<string>", "marks": "map<string, int32>", "gone": "boolean", "day": "date",
    }  # fmt: skip
    return [{"name": name, "type": kind} for name, kind in types.items()]


def _definition(dice: random.Random, *, shuffled: bool) -> Json:
    total_type = dice.choice(("decimal(18, 2)", "double", "int64"))
    schema = {"fields": fields_of(dice.choice(ORDER_TYPES), total_type)}
    found: Json = {"schema": schema, "changelog": {"producer": dice.choice(_PRODUCERS)}}
    if dice.random() < 0.7:
        found["table_type"] = dice.choice(("copy_on_write", "merge_on_read"))
    if dice.random() < 0.6:
        found["partition_by"] = ["p"]
    if dice.random() < 0.05 and not shuffled:
        return found
    bucket = dice.choice(_BUCKETS)
    if bucket is not None:
        found["bucket"] = bucket
    moves = bucket is not None and bucket["mode"] == "key_dynamic"
    found["record_key"] = ["id"] if moves else ["p", "id"]
    if dice.random() < 0.5:
        found["index"] = {"type": dice.choice(_INDEXES)}
    return found | (_shuffled(dice) if shuffled else _merge(dice))


def _merge(dice: random.Random) -> Json:
    """How rows of one key are merged."""
    mode = dice.choice(_MODES)
    found: Json = {"merge_mode": mode}
    ordered = mode == "event_time" or (mode in ("partial", "aggregate") and dice.random() < 0.7)
    if ordered:
        found["ordering_field"] = "meta.ts" if mode == "event_time" and dice.random() < 0.2 else "ts"
    if mode == "partial":
        found["sequence_groups"] = dice.sample(_GROUPS, dice.choice((0, 1, 2)))
    if mode == "aggregate":
        found["aggregates"] = {
            name: dice.choice(functions) for name, functions in _FUNCTIONS.items() if dice.random() < 0.6
        }
    if dice.random() < 0.25:
        found["delete_marker"] = "gone"
        found.get("aggregates", {}).pop("gone", None)
    if (keep_seconds := dice.choice((*KEEP_SECONDS, 5, None))) is not None:
        found["deletes"] = {"keep_seconds": keep_seconds if "ordering_field" in found else 0}
    return found


def _shuffled(dice: random.Random) -> Json:
    """`event_time` whose tombstones last, or `partial` with every field in a sequence group of its own order."""
    if dice.random() < 0.7:
        keep_seconds = dice.choice((0, 604_800, 604_800))
        return {"merge_mode": "event_time", "ordering_field": "ts", "deletes": {"keep_seconds": keep_seconds}}
    return {"merge_mode": "partial", "sequence_groups": list(_GROUPS)}


def plain(definition: Json, dice: random.Random, is_valid: Callable[[Json], bool]) -> Json:
    """A dataset that holds any rows of another one as they are, in whatever files."""
    while True:
        found = _definition(dice, shuffled=False)
        if "record_key" not in definition:
            found = {name: found[name] for name in ("changelog", "table_type") if name in found}
        else:
            for name in ("ordering_field", "sequence_groups", "aggregates", "delete_marker", "deletes"):
                found.pop(name, None)
            found |= {"merge_mode": "commit_time", "record_key": definition["record_key"]}
        found["schema"] = definition["schema"]
        if is_valid(found):
            return found
