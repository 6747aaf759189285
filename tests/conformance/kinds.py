"""Every kind of dataset there could be, as values on a few axes; which of them are refused, and with which reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final

from app.kernel.format.dataset import (
    Aggregate,
    BucketFunction,
    BucketMode,
    ChangelogProducer,
    DatasetDefinition,
    IndexType,
    MergeMode,
    TableType,
)
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateIndex,
    CreateSchema,
    CreateSequenceGroup,
)
from app.kernel.format.errors import InvalidDataset

Reason = tuple[str, str]
"""A pointer into the request, and what was expected there."""

FIELDS: Final = [
    CreateField(name="p", type="string"),
    CreateField(name="id", type="int64"),
    CreateField(name="ts", type="int64"),
    CreateField(name="seen", type="int64"),
    CreateField(name="name", type="string"),
    CreateField(name="n", type="int32"),
    CreateField(name="total", type="double"),
    CreateField(name="tags", type="list<string>"),
    CreateField(name="gone", type="boolean"),
]

_SIZES: Final[dict[str, Any]] = {"count": 1, "target_rows": 2, "max_buckets": 3}

# What each value of an axis adds to a registration.
KEYS: Final[dict[str, dict[str, Any]]] = {
    "a record key": {"record_key": ["p", "id"]},
    "no record key": {},
}
TABLE_TYPES: Final[dict[str, dict[str, Any]]] = {kind.value: {"table_type": kind} for kind in TableType}
MERGES: Final[dict[str, dict[str, Any]]] = {
    "(default)": {},
    "event_time": {"merge_mode": MergeMode.EVENT_TIME, "ordering_field": "ts"},
    "event_time, delete_marker": {
        "merge_mode": MergeMode.EVENT_TIME,
        "ordering_field": "ts",
        "delete_marker": "gone",
    },
    "commit_time": {"merge_mode": MergeMode.COMMIT_TIME},
    "first": {"merge_mode": MergeMode.FIRST},
    "partial": {"merge_mode": MergeMode.PARTIAL, "ordering_field": "ts"},
    "partial, sequence_groups": {
        "merge_mode": MergeMode.PARTIAL,
        "sequence_groups": [CreateSequenceGroup(ordering_field="seen", fields=["name", "tags"])],
    },
    "aggregate": {
        "merge_mode": MergeMode.AGGREGATE,
        "ordering_field": "ts",
        "aggregates": {"total": Aggregate.SUM, "tags": Aggregate.COLLECT, "seen": Aggregate.MAX},
    },
    "aggregate, sum of int32": {"merge_mode": MergeMode.AGGREGATE, "aggregates": {"n": Aggregate.SUM}},
}
BUCKETS: Final[dict[str, dict[str, Any]]] = {
    "(default)": {},
    "fixed, halved": {"bucket": CreateBucket(mode=BucketMode.FIXED, target_rows=2)},
    "fixed, hash": {"bucket": CreateBucket(mode=BucketMode.FIXED, count=2)},
    "fixed, mod": {
        "bucket": CreateBucket(mode=BucketMode.FIXED, count=2, key=["id"], function=BucketFunction.MOD)
    },
    "dynamic": {"bucket": CreateBucket(mode=BucketMode.DYNAMIC, **_SIZES)},
    "key_dynamic": {"bucket": CreateBucket(mode=BucketMode.KEY_DYNAMIC, **_SIZES)},
    "postpone": {"bucket": CreateBucket(mode=BucketMode.POSTPONE, **_SIZES)},
    "postpone, fixed_now": {"bucket": CreateBucket(mode=BucketMode.POSTPONE, count=2, fixed_now=True)},
    "unaware": {"bucket": CreateBucket(mode=BucketMode.UNAWARE)},
    "unaware, shuffle_by_partition": {
        "bucket": CreateBucket(mode=BucketMode.UNAWARE, shuffle_by_partition=True)
    },
}
PRODUCERS: Final[dict[str, dict[str, Any]]] = {
    kind.value: {"changelog": CreateChangelog(producer=kind)} for kind in ChangelogProducer
}
INDEXES: Final[dict[str, dict[str, Any]]] = {
    "(default)": {},
    **{kind.value: {"index": CreateIndex(type_=kind)} for kind in IndexType},
}
PARTITIONS: Final[dict[str, dict[str, Any]]] = {
    "partitions": {"partition_by": ["p"]},
    "no partitions": {},
}

AXES: Final[Mapping[str, Mapping[str, dict[str, Any]]]] = {
    "record_key": KEYS,
    "table_type": TABLE_TYPES,
    "merge_mode": MERGES,
    "bucket.mode": BUCKETS,
    "changelog.producer": PRODUCERS,
    "index.type": INDEXES,
    "partition_by": PARTITIONS,
}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One value of every axis, in the order of AXES."""

    values: tuple[str, ...]

    @property
    def name(self) -> str:
        """As tests are named after it."""
        return "-".join(
            value for value in self.values if value not in ("a record key", "partitions", "(default)")
        )

    def on(self, axis: str) -> str:
        return dict(zip(AXES, self.values, strict=True))[axis]

    @property
    def keyed(self) -> bool:
        return self.on("record_key") == "a record key"

    @property
    def moves(self) -> bool:
        """Whether keys are unique across partitions, so that rows can move between them."""
        return self.keyed and self.on("bucket.mode") == "key_dynamic"

    def registration(self) -> CreateDataset:
        parts: dict[str, Any] = {}
        for axis, value in zip(AXES, self.values, strict=True):
            parts |= AXES[axis][value]
        if self.moves:
            parts["record_key"] = ["id"]
        return CreateDataset(name="t", schema=CreateSchema(fields=FIELDS), **parts)


@cache
def defined(kind: Kind) -> DatasetDefinition | tuple[Reason, ...]:
    """The dataset, or why there is no such."""
    try:
        return define_dataset(kind.registration())
    except InvalidDataset as refusal:
        return tuple((error["pointer"], error["detail"]) for error in refusal.facts["errors"])


def every_kind() -> list[Kind]:
    """The whole product."""
    return [Kind(values=values) for values in product(*AXES.values())]


@cache
def legal_kinds() -> tuple[Kind, ...]:
    return tuple(kind for kind in every_kind() if isinstance(defined(kind), DatasetDefinition))


def distinct_kinds() -> list[Kind]:
    """The legal kinds, without those that only leave out what is the default."""
    seen: set[DatasetDefinition] = set()
    found = []
    for kind in legal_kinds():
        definition = defined(kind)
        assert isinstance(definition, DatasetDefinition)
        text = repr(definition)
        if text not in seen:
            seen.add(text)
            found.append(kind)
    return found
