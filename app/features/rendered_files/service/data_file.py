"""The rendering of a data file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import msgspec
import pyarrow as pa

from app.features.rendered_files.service.view import FileView
from app.features.rendered_files.values import RenderedRows, RenderingOrigin
from app.infra.files.checksums import HashingSink
from app.infra.files.parquet_file import BASE_ROW_GROUP_ROWS, parquet_sink
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.row_scan import RowChoice, base_rows
from app.infra.files.statistics import column_statistics
from app.kernel.format.file_group import DataFile

_KEY_BYTES: Final = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFileRendering:
    """A data file with what a view shows of it (`Rendering`)."""

    slices: SliceReader
    source: DataFile
    file_view: FileView

    @property
    def key(self) -> bytes:
        """See `Rendering`."""
        facts = self.source.path, self.source.added_version, self.view
        return blake2b(msgspec.json.encode(facts), digest_size=_KEY_BYTES).digest()

    @property
    def view(self) -> str:
        """See `Rendering`."""
        return self.file_view.digest

    @property
    def origin(self) -> RenderingOrigin:
        """See `Rendering`."""
        return RenderingOrigin(
            version=self.source.added_version or 0,
            data_path=self.source.path,
            schema_id=self.file_view.definition.schema.id,
        )

    def write(self, sink: HashingSink) -> RenderedRows:
        """See `Rendering`."""
        schema = self.file_view.arrow_schema
        with parquet_sink(sink, self.source.path, schema, row_group_rows=BASE_ROW_GROUP_ROWS) as parquet:
            for rows in self._rows():
                parquet.write(self._as_shown(rows))
            if not parquet.rows:
                return RenderedRows(row_count=0)
            parquet.finish()
        statistics = column_statistics(parquet.metadata[0], self.file_view.visible_schema)
        return RenderedRows(row_count=parquet.rows, statistics=statistics)

    def _rows(self) -> Iterator[pa.Table]:
        """The live rows that are shown, with the columns that have values."""
        # Rows without any column are not counted: one is read whose values are not shown.
        fields = self.file_view.visible_schema.fields or self.file_view.columns[:1]
        schema = pa.schema([field.to_arrow().with_nullable(True) for field in fields])
        choice = RowChoice(where=self.file_view.bound.where)
        file = self.source
        return base_rows(self.slices, self.file_view.definition, file, schema, choice, 0, file.row_count)

    def _as_shown(self, rows: pa.Table) -> pa.Table:
        columns = [
            # Columns of dictionaries still have the values of all rows, also of those that are not shown.
            pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
            if field.name in self.file_view.bound.masked
            else rows.column(field.name).cast(field.type)
            for field in self.file_view.arrow_schema
        ]
        return pa.Table.from_arrays(columns, schema=self.file_view.arrow_schema)
