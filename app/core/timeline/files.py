"""Files of archived instants: entries of a timeline in Parquet, in the order of their ids."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from app.core.timeline.archives import TimelineArchive
from app.core.timeline.instants import InstantFilter, InstantRecord
from app.infra.files.parquet_file import ParquetReader, create_parquet
from app.infra.files.storage import Storage
from app.kernel.format.errors import Fault
from app.kernel.format.file_group import StoredFile
from app.kernel.format.instant import Action, InstantState, RowCounts

_ROW_GROUP_ROWS: Final = 1_000
_MOMENT: Final = pa.timestamp("us", tz="UTC")
_COUNTS: Final = pa.struct([(name, pa.int64()) for name in RowCounts.__struct_fields__])
# One column for each member of an entry. Members without a fixed form are JSON.
_SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("job_id", pa.string()),
        pa.field("transaction_id", pa.string()),
        pa.field("actor", pa.string()),
        pa.field("actor_name", pa.string()),
        pa.field("writer_id", pa.string()),
        pa.field("batch_id", pa.int64()),
        pa.field("parameters", pa.string(), nullable=False),
        pa.field("version", pa.int64()),
        pa.field("schema_id", pa.int32()),
        pa.field("requested_at", _MOMENT, nullable=False),
        pa.field("started_at", _MOMENT),
        pa.field("completed_at", _MOMENT),
        pa.field("rows", _COUNTS, nullable=False),
        pa.field("files_added", pa.int64(), nullable=False),
        pa.field("files_removed", pa.int64(), nullable=False),
        pa.field("bytes_added", pa.int64(), nullable=False),
        pa.field("bytes_removed", pa.int64(), nullable=False),
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("watermark", _MOMENT),
        pa.field("metadata", pa.string()),
        pa.field("error", pa.string()),
    ]
)


class TimelineFileStore:
    """Writes and reads files of instants on a storage."""

    def __init__(self, storage: Storage, reader: ParquetReader) -> None:
        self._storage = storage
        self._reader = reader

    def write(self, path: str, records: Sequence[InstantRecord]) -> TimelineArchive:
        """`records`: in the order of their ids, one at least. Raises StorageFull."""
        rows = [_row(record) for record in records]
        table = pa.Table.from_pylist(rows, schema=_SCHEMA)
        with create_parquet(self._storage, path, _SCHEMA, row_group_rows=_ROW_GROUP_ROWS) as sink:
            sink.write(table)
            sink.finish()
        return TimelineArchive(
            path=path,
            first_instant=records[0].id,
            last_instant=records[-1].id,
            row_count=sink.rows,
            size_bytes=sink.hashing.size_bytes,
            checksum=sink.hashing.checksum,
        )

    def read(
        self, archive: TimelineArchive, before: str | None, instant_filter: InstantFilter, limit: int
    ) -> list[InstantRecord]:
        """Up to `limit` of the wanted instants before one (None: any), the latest first. Raises CorruptFile."""
        file = StoredFile(
            path=archive.path,
            size_bytes=archive.size_bytes,
            checksum=archive.checksum,
            row_count=archive.row_count,
            schema_id=0,
        )
        records: list[InstantRecord] = []
        for record in _backwards(self._reader.open(file), before):
            if len(records) == limit:
                break
            if instant_filter.selects(record):
                records.append(record)
        return records


def _backwards(parquet: pq.ParquetFile, before: str | None) -> Iterator[InstantRecord]:
    """The entries before an instant, the latest first; row groups are read one by one."""
    ids = parquet.read(columns=["id"]).column("id").to_pylist()
    end = len(ids) if before is None else bisect_left(ids, before)
    start = len(ids)
    for number in reversed(range(parquet.metadata.num_row_groups)):
        start -= parquet.metadata.row_group(number).num_rows
        if start < end:
            group = parquet.read_row_group(number, use_threads=False).slice(0, end - start)
            yield from (_record(row) for row in reversed(group.to_pylist()))


def _row(record: InstantRecord) -> dict[str, Any]:
    return msgspec.structs.asdict(record) | {
        "action": record.action.value,
        "state": record.state.value,
        "parameters": msgspec.json.encode(record.parameters).decode(),
        "metadata": msgspec.json.encode(record.metadata).decode() if record.metadata else None,
        "rows": msgspec.structs.asdict(record.rows),
        "error": None if record.error is None else msgspec.json.encode(record.error).decode(),
    }


def _record(row: dict[str, Any]) -> InstantRecord:
    # Earlier releases stored no watermark, and no metadata.
    names = ("requested_at", "started_at", "completed_at", "watermark")
    moments = {name: _utc(row.get(name)) for name in names}
    return InstantRecord(
        **row
        | moments
        | {
            "action": Action(row["action"]),
            "state": InstantState(row["state"]),
            "parameters": msgspec.json.decode(row["parameters"]),
            "metadata": msgspec.json.decode(row.get("metadata") or "{}"),
            "rows": RowCounts(**row["rows"]),
            "error": None if row["error"] is None else msgspec.json.decode(row["error"], type=Fault),
        }
    )


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
