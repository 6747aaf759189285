"""An index and a reader of changelog files that hold a history in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
import pyarrow as pa

from app.core.catalog.values import AwaitedHead, Dataset
from app.core.changes.positions import FeedBounds
from app.kernel.format.file_group import ChangelogFile, ChangelogSegment, StoredFile
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.format.rows.meta_columns import CORRECTS_FIELD
from app.kernel.format.rows.row_sizes import rows_within
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.schema_projection import project_rows
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.tree import Filter
from tests.support.histories import DEFINITION, History, committed_ms

DATASET = Dataset(
    id="d", tenant_id="t", definition=DEFINITION, version=0, next_offset=0, created_at=datetime.now(UTC),
    committed_at=None,
)  # fmt: skip


@dataclass(kw_only=True)
class Stored:
    """A history as files: one for each commit. `read` lists version, columns and number of rows of every read.

    Row groups have `group_rows` rows, and bounds as sharp as can be: they rule out each in which no row matches.
    """

    history: History
    earliest: int = 0
    group_rows: int = 2
    read: list[tuple[int, list[str], int]] = field(default_factory=list)

    def get(self, tenant_id: str, reference: str) -> Dataset:
        return msgspec.structs.replace(
            DATASET, version=len(self.history.commits), next_offset=len(self.history.changes)
        )

    def moved_heads(self, tenant_id: str, awaited: Sequence[AwaitedHead]) -> dict[str, Dataset | None]:
        dataset = self.get(tenant_id, DATASET.id)
        return {each.dataset_id: dataset if dataset.next_offset > each.position else None for each in awaited}

    def bounds(self, tenant_id: str, dataset_id: str) -> FeedBounds:
        return FeedBounds(earliest=self.earliest, next_offset=len(self.history.changes))

    def segments(
        self, tenant_id: str, dataset_id: str, since: int, until: int, *, limit: int | None = None
    ) -> list[ChangelogSegment]:
        found, first = [], 0
        for version, commit in enumerate(self.history.commits, 1):
            if first < until and first + len(commit) > since:
                file = ChangelogFile(
                    path=str(version),
                    size_bytes=1,
                    checksum="",
                    row_count=len(commit),
                    schema_id=1,
                    file_group="g",
                )
                time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=committed_ms(version))
                found.append(
                    ChangelogSegment(
                        file=file,
                        first_offset=first,
                        version=version,
                        committed_at=time,
                        row_count=len(commit),
                    )
                )
            first += len(commit)
        return found[:limit]

    def read_slice(
        self, file: StoredFile, schema: pa.Schema, first_row: int, rows: int, *, bytes_max: int | None = None
    ) -> pa.Table:
        found = project_rows(self._rows(file).slice(first_row, rows), schema)
        if bytes_max is not None:
            found = found.slice(0, rows_within(found, bytes_max))
        self.read.append((int(file.path), schema.names, found.num_rows))
        return found

    def row_ranges(
        self, file: StoredFile, where: Filter, schema: Schema, first_row: int, rows: int
    ) -> list[tuple[int, int]]:
        stored = self._rows(file)
        found = []
        for start in range(0, stored.num_rows, self.group_rows):
            group = stored.slice(start, self.group_rows)
            first, end = max(start, first_row), min(start + group.num_rows, first_row + rows)
            if first < end and matches(where, group).any():
                found.append((first, end))
        return found

    def _rows(self, file: StoredFile) -> pa.Table:
        declared = pa.schema([*DEFINITION.schema.to_arrow(), (OP_COLUMN, pa.uint8()), CORRECTS_FIELD])
        rows = [
            {**change["row"], OP_COLUMN: change["op"], CORRECTS_FIELD.name: change["corrects_offset"]}
            for change in self.history.changes
            if change["version"] == int(file.path)
        ]
        return pa.Table.from_pylist(rows, schema=declared)
