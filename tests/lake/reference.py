"""The reference model: a merge spelled out row by row over a dict, independent of the columnar one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.lake.changelog import Op
from app.lake.dataset import DatasetDefinition, MergeMode
from app.lake.operation import Operation

Row = dict[str, Any]


@dataclass(kw_only=True)
class Table:
    """A keyed table with the feed of everything that happened to it."""

    dataset: DatasetDefinition
    live: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    feed: list[tuple[int, Row]] = field(default_factory=list)

    def key(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.dataset.record_key)

    def conflicts(self, operation: Operation, rows: Sequence[Row]) -> bool:
        """Whether an insert would meet a live key."""
        return operation.refuses_live_keys and any(self.key(row) in self.live for row in rows)

    def apply(self, operation: Operation, rows: Sequence[Row]) -> dict[str, int]:
        """Applies one write and returns its counts."""
        counts = dict.fromkeys(("inserted", "updated", "deleted", "unchanged"), 0)
        chosen: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            earlier = chosen.get(self.key(row))
            if earlier is not None:
                counts["unchanged"] += 1
            if earlier is None or not self._beats(earlier, row, operation):
                chosen[self.key(row)] = row
        for key, row in chosen.items():
            counts[self._one(key, operation, row)] += 1
        return counts

    def _rank(self, row: Row, operation: Operation) -> tuple[int, Any]:
        if self.dataset.merge_mode is not MergeMode.EVENT_TIME:
            return (0, 0)
        value = row[self.dataset.ordering_field or ""]
        if value is None:
            return (2, 0) if operation is Operation.DELETE else (0, 0)
        return (1, value)

    def _beats(self, earlier: Row, later: Row, operation: Operation) -> bool:
        return self._rank(earlier, operation) > self._rank(later, operation)

    def _one(self, key: tuple[Any, ...], operation: Operation, row: Row) -> str:
        before = self.live.get(key)
        if operation is Operation.DELETE:
            if before is None or self._rank(before, Operation.UPSERT) > self._rank(row, operation):
                return "unchanged"
            del self.live[key]
            self.feed.append((Op.RETRACT, before))
            return "deleted"
        if before is None:
            self.live[key] = row
            self.feed.append((Op.APPEND, row))
            return "inserted"
        if self._rank(before, operation) > self._rank(row, operation) or before == row:
            return "unchanged"
        self.live[key] = row
        self.feed += [(Op.CORRECT_FROM, before), (Op.CORRECT_TO, row)]
        return "updated"
