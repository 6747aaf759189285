"""Views computed in this process: instead of their SQL, a function of the rows of their inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import Storage
from app.kernel.derivation.request import (
    DeriveInput,
    DeriveRequest,
    FeedInput,
    RowsInput,
    TableInput,
    has_ops,
)
from app.kernel.format.errors import DerivationFailed
from app.kernel.format.file_group import DataFile
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD
from app.kernel.format.rows.staged import StagedFile

Row = dict[str, Any]
# Of a list of rows for each input, in the order of their names. Of a view that follows its input row by row it makes
# one row of one, or none.
Query = Callable[..., list[Row]]


class DerivationInProcess:
    """`queries`: by the name of a view. `requests`: what was requested, in order."""

    def __init__(self, storage: Storage) -> None:
        self._reader = ParquetReader(storage)
        self._slices = SliceReader(self._reader, VectorReader(storage))
        self._staged = StagedFileStore(storage)
        self.queries: dict[str, Query] = {}
        self.requests: list[DeriveRequest] = []

    def derive(self, request: DeriveRequest) -> tuple[StagedFile, ...]:
        self.requests.append(request)
        query = self.queries.get(request.view.name)
        if query is None:
            # Of a test that only registers it; who works next comes to its refresh.
            raise DerivationFailed(f"nothing stands in for {request.view.name}", condition=None)
        inputs = [self._rows(each) for each in request.inputs.values()]
        schema = request.view.schema.to_arrow()
        match list(request.inputs.values()):
            case [source] if has_ops(source):
                changes = [(change.pop(OP_COLUMN), change) for change in inputs[0]]
                rows = [{OP_COLUMN: op} | row for op, change in changes for row in query([change])]
                schema = pa.schema([OP_FIELD, *schema])
            case _:
                rows = query(*inputs)
        table = pa.Table.from_pylist(rows, schema=schema)
        staged = self._staged.write(request.view, request.operation, [table], f"{request.prefix}-00000.arrow")
        return () if staged is None else (staged,)

    def _rows(self, source: DeriveInput) -> list[Row]:
        match source:
            case TableInput():
                return list(self._live(source))
            case FeedInput():
                return list(self._changes(source))
            case RowsInput():
                return list(self._staged_rows(source))

    def _live(self, source: TableInput) -> Iterator[Row]:
        groups: dict[str, list[DataFile]] = defaultdict(list)
        for file in source.files:
            groups[file.file_group].append(file)
        names = source.dataset.schema.names()
        for files in groups.values():
            for block in merged_blocks(self._slices, source.dataset, files, MemoryBudget(bytes_max=2**30)):
                yield from block.rows.select(names).to_pylist()

    def _staged_rows(self, source: RowsInput) -> Iterator[Row]:
        names = [*((OP_COLUMN,) if has_ops(source) else ()), *source.columns]
        for file in source.files:
            rows = self._staged.read(file, range(len(file.batches)), source.dataset, source.operation)
            yield from rows.select(names).to_pylist()

    def _changes(self, source: FeedInput) -> Iterator[Row]:
        schema = pa.schema([OP_FIELD, *source.dataset.schema.to_arrow()])
        for segment in source.segments:
            first = max(source.since - segment.first_offset, 0)
            last = min(source.until - segment.first_offset, segment.file.row_count)
            yield from self._reader.read_slice(segment.file, schema, first, last - first).to_pylist()
