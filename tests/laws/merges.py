"""Histories on the merge alone: rows and tombstones are in memory, and there are no files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.commit.merge.merge import merge
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD
from app.kernel.format.rows.kept_fields import KEPT_FIELD
from app.kernel.format.rows.meta_columns import META_FIELDS, META_NAMES
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN
from app.kernel.format.rows.tombstones import DELETED_AT_FIELD, VERSION_FIELD, time_of, tombstone_schema
from tests.laws.checks import Change
from tests.laws.model import condition
from tests.laws.tables import OPS, SYMBOLS, changed_row, defined, json_row

Json = dict[str, Any]
Row = dict[str, Any]
_TAKES_BACK: Final = ("-R", "-C")
_SECOND: Final = 1_000_000


class MergedTable:
    """A table with a key whose rows are in memory."""

    def __init__(self, registration: Json) -> None:
        self.dataset = defined(registration)
        self.registration = registration
        self.keep_seconds = self.dataset.keep_seconds
        self.types = {each["name"]: each["type"] for each in registration["schema"]["fields"]}
        self.postpones = self.dataset.bucket.opens_by_size and self.dataset.bucket.mode.value == "postpone"
        self.version = 0
        self.now = 0.0
        self.feed: list[Change] = []
        self.live = self._schema.empty_table()
        self.tombstones = tombstone_schema(self.dataset).empty_table()
        self.waiting: list[tuple[Json, float, int]] = []
        self.states: dict[int, tuple[pa.Table, pa.Table, list[tuple[Json, float, int]]]] = {}
        self._note()

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([*self.dataset.schema.to_arrow(), *META_FIELDS])

    def commit(self, writes: Sequence[Json]) -> list[bool]:
        if (
            self.postpones
            and writes[0]["operation"] in ("upsert", "delete", "changelog")
            and "rows" in writes[0]
        ):
            self.waiting += [(write, self.now, self.keep_seconds) for write in writes]
            self._note()
            return [False] * len(writes)
        left = list(range(len(writes)))
        while left:
            jobs = self._merge([(writes[number], self.now, self.keep_seconds) for number in left])
            if not jobs:
                break
            left = [number for at, number in enumerate(left) if at not in jobs]
        self._note()
        return [number not in left for number in range(len(writes))]

    def serve(self, service: str) -> None:
        if service == "compact":
            waiting, self.waiting = self.waiting, []
            for each in waiting:
                self._merge([each])
        self._note()

    def restore(self, version: int) -> None:
        live, self.tombstones, waiting = self.states[version]
        self.waiting = list(waiting)
        gone = [("-R", json_row(self.types, row)) for row in self._rows(self.live)]
        self.feed += [*gone, *(("+A", json_row(self.types, row)) for row in self._rows(live))]
        self.live = live
        self._note()

    def patch(self, keep_seconds: int) -> None:
        self.keep_seconds = keep_seconds
        self._note()

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def rows(self) -> list[Json]:
        return self._rows(self.live)

    def rows_at(self, version: int) -> list[Json]:
        return self._rows(self.states[version][0])

    def changes(self, since: int) -> list[Change]:
        return [] if self.registration["changelog"]["producer"] == "none" else self.feed[since:]

    def _rows(self, live: pa.Table) -> list[Row]:
        return list(live.drop_columns(list(META_NAMES)).to_pylist())

    def _note(self) -> None:
        self.version += 1
        self.states[self.version] = (self.live, self.tombstones, list(self.waiting))

    def _merge(self, writes: Sequence[tuple[Json, float, int]]) -> set[int]:
        """Merges writes as one group. Returns the numbers of those that are refused; then nothing has changed."""
        scope = self._scope(writes[0][0])
        incoming = self._incoming([write for write, _, _ in writes])
        touched = _keys(self.live, self.dataset.record_key, incoming)
        if scope is not None:
            touched |= np.array([scope(row) for row in self._rows(self.live)], dtype=bool)
        buried = _keys(self.tombstones, self.dataset.record_key, incoming)
        result = merge(
            self.dataset,
            self.live.filter(pa.array(touched)),
            incoming,
            {number: self._intent(*each) for number, each in enumerate(writes)},
            tombstones=self.tombstones.filter(pa.array(buried)),
            retract_rest=scope is not None,
        )
        if result.conflicts:
            return {conflict.job for conflict in result.conflicts}
        offsets = pa.array(range(len(self.live), len(self.live) + result.rows.num_rows), pa.int64())
        fresh = result.rows
        for name in META_NAMES:
            fresh = fresh.set_column(fresh.schema.get_field_index(name), name, offsets)
        untouched = self.live.filter(pa.array(~touched))
        kept = self.live.filter(pa.array(touched)).filter(pa.array(result.stays))
        self.live = pa.concat_tables([untouched, kept, fresh.cast(self._schema)]).combine_chunks()
        self._bury(buried, result.tombstones_stay, result.tombstones, writes[-1][1])
        names = self.dataset.schema.names()
        self.feed += [
            (SYMBOLS[change[OP_COLUMN]], json_row(self.types, {name: change[name] for name in names}))
            for change in result.changes.to_pylist()
        ]
        return set()

    def _bury(self, read: np.ndarray, stay: np.ndarray, fresh: pa.Table | None, at: float) -> None:
        left = [
            self.tombstones.filter(pa.array(~read)),
            self.tombstones.filter(pa.array(read)).filter(pa.array(stay)),
        ]
        if fresh is not None:
            time = pa.scalar(time_of(int(at * _SECOND)), DELETED_AT_FIELD.type)
            for field, value in (
                (DELETED_AT_FIELD, time),
                (VERSION_FIELD, pa.scalar(self.version, pa.int64())),
            ):
                place = fresh.schema.get_field_index(field.name)
                fresh = fresh.set_column(place, field, pc.fill_null(fresh.column(place), value))
            left.append(fresh.select(self.tombstones.column_names).cast(self.tombstones.schema))
        self.tombstones = pa.concat_tables(left).combine_chunks()

    def _intent(self, write: Json, at: float, keep_seconds: int) -> WriteIntent:
        facts = write["operation"] == "changelog" and write.get("order", "arrival") == "arrival"
        keeps = write.get("tombstone", True) and not facts
        return WriteIntent(
            operation=Operation(write["operation"]),
            drop_duplicates=bool(write.get("drop_duplicates")),
            quarantine=write.get("on_error") == "quarantine",
            by_arrival=facts,
            keep_seconds=keep_seconds if keeps else 0,
            committed_at=time_of(int(at * _SECOND)),
        )

    def _incoming(self, writes: Sequence[Json]) -> pa.Table:
        marker = self.dataset.delete_marker
        rows, ops, jobs, positions = [], [], [], []
        for job, write in enumerate(writes):
            for position, each in enumerate(write.get("rows", ())):
                op, row = each if write["operation"] == "changelog" else ("+A", each)
                marked = write["operation"] == "upsert" and marker is not None and row.get(marker)
                ops.append(int(OPS["-R" if write["operation"] == "delete" or marked else op]))
                rows.append(changed_row(self.dataset, self.types, row))
                jobs.append(job)
                positions.append(position)
        fields = [field.with_nullable(True) for field in self.dataset.schema.to_arrow()]
        table = pa.Table.from_pylist(rows, schema=pa.schema([*fields, KEPT_FIELD]))
        table = table.add_column(0, OP_FIELD, pa.array(ops, pa.uint8()))
        table = table.append_column(ROW_COLUMN, pa.array(positions, pa.int64()))
        return table.append_column(JOB_COLUMN, pa.array(jobs, pa.int32()))

    def _scope(self, write: Json) -> Callable[[Row], bool] | None:
        """Which live rows the write removes; None for one that names its rows by key."""
        overwrite = write.get("overwrite") or {}
        where = write.get("where") or overwrite.get("where")
        if where is not None:
            return condition(where)
        if write["operation"] == "delete_partition":
            return lambda row: f"p={row['p']}" in write["partitions"]
        if overwrite.get("scope") == "partitions":
            own = {row["p"] for row in write["rows"]}
            return lambda row: row["p"] in own
        return (lambda row: True) if write["operation"] in ("snapshot", "overwrite") else None


def _keys(table: pa.Table, key: Sequence[str], incoming: pa.Table) -> np.ndarray:
    """Which rows of the table have a key of the incoming rows (bool)."""
    keys = {tuple(row.values()) for row in incoming.select(list(key)).to_pylist()}
    return np.array([tuple(row.values()) in keys for row in table.select(list(key)).to_pylist()], dtype=bool)
