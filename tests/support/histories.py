"""Random histories of a keyed dataset, and their feeds as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from tests.kernel.commit.reference import Row, Table

FIELDS = [
    CreateField(name="k", type="string"),
    CreateField(name="n", type="int32"),
    CreateField(name="at", type="timestamp"),
    CreateField(name="op", type="decimal(4, 1)"),
    CreateField(name="tags", type="map<string, list<int32>>"),
]
DEFINITION = define_dataset(
    CreateDataset(name="t", schema=CreateSchema(fields=FIELDS), record_key=["k"], event_time_field="at")
)
_COMMITTED_MS = 1_700_000_000_000
_ROWS = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", "c", "ü\u2028\n"]),
        "n": st.one_of(st.none(), st.integers(0, 2)),
        "at": st.one_of(st.none(), st.datetimes(timezones=st.just(UTC))),
        "op": st.one_of(st.none(), st.decimals(-1, 1, places=1)),
        "tags": st.one_of(st.none(), st.just([]), st.just([("x", [1, None])])),
    }
)
_WRITES = st.tuples(
    st.sampled_from([Operation.UPSERT, Operation.UPSERT, Operation.DELETE]),
    st.lists(_ROWS, min_size=1, max_size=5),
)


@dataclass(frozen=True, kw_only=True)
class History:
    """Commits of one dataset: the changes of version n are `commits[n - 1]`, pairs of op and row."""

    definition: DatasetDefinition
    commits: Sequence[Sequence[tuple[int, Row]]]

    @property
    def changes(self) -> list[dict[str, Any]]:
        """Every change with its offset, its version and the offset of the change that it takes back."""
        listed = [(version, op, row) for version, commit in enumerate(self.commits, 1) for op, row in commit]
        appended_at: dict[Any, int] = {}
        found = []
        for offset, (version, op, row) in enumerate(listed):
            puts = op in (Op.APPEND, Op.CORRECT_TO)
            corrects = None if puts else appended_at.pop(row["k"], None)
            if puts:
                appended_at[row["k"]] = offset
            found.append(
                {"offset": offset, "op": int(op), "version": version, "row": row, "corrects_offset": corrects}
            )
        return found

    def table(self) -> pa.Table:
        """The feed as a page of it has it: one chunk for each commit."""
        row = pa.struct([field.with_nullable(True) for field in self.definition.schema.to_arrow()])
        schema = pa.schema(
            [
                ("offset", pa.int64()),
                ("op", pa.uint8()),
                ("version", pa.int64()),
                ("system_time", pa.timestamp("ms", "UTC")),
                ("event_time", pa.timestamp("us", "UTC")),
                ("row", row),
                ("corrects_offset", pa.int64()),
            ]
        )
        rows = [
            {**change, "system_time": committed_ms(change["version"]), "event_time": change["row"]["at"]}
            for change in self.changes
        ]
        chunks = [
            pa.Table.from_pylist([each for each in rows if each["version"] == version], schema=schema)
            for version in range(1, len(self.commits) + 1)
        ]
        return pa.concat_tables([schema.empty_table(), *chunks])


def committed_ms(version: int) -> int:
    """When the version was committed, in milliseconds since 1970."""
    return _COMMITTED_MS + version


def _history(writes: list[tuple[Operation, list[Row]]]) -> History:
    table = Table(dataset=DEFINITION)
    commits = []
    for operation, rows in writes:
        table.feed.clear()
        table.apply(operation, rows)
        if table.feed:
            commits.append(list(table.feed))
    return History(definition=table.dataset, commits=commits)


histories = st.lists(_WRITES, max_size=6).map(_history)
