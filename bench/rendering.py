"""What it costs to render data files for readers of a part of a table, on one core.

Each case renders the same file of five plain columns. Its bytes are counted and not stored.
"""

from __future__ import annotations

import io
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa

from app.features.rendered_files.service.data_file import DataFileRendering
from app.features.rendered_files.service.view import FileView
from app.infra.files.checksums import HashingSink
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.parquet_file import BASE_ROW_GROUP_ROWS, ParquetReader, create_parquet
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.statistics import column_statistics
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import DataFile, Slot
from app.kernel.format.rows.file_columns import LAYOUT
from app.kernel.sql.conditions.bound_access import bind_access
from app.kernel.sql.conditions.row_access import RowAccess
from bench.options import parser
from bench.report import publish

_COLUMNS: Final = {"id": "int64", "n": "int32", "x": "double", "place": "string", "at": "timestamp"}
_CASES: Final = {
    "all rows": RowAccess(),
    "one column masked": RowAccess(masked=("x",)),
    "half of the rows": RowAccess(where=("n < 500",)),
    "half of the rows, one column masked": RowAccess(where=("n < 500",), masked=("place",)),
    "one row of 50": RowAccess(where=("place = 'place 7'",)),
}


class _Counter(io.RawIOBase):
    """A file whose bytes are not kept."""

    def writable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def write(self, data: Any) -> int:
        """See `io.RawIOBase`."""
        return memoryview(data).nbytes


def _rows(definition: DatasetDefinition, count: int) -> pa.Table:
    random = np.random.default_rng(1)
    columns = {
        "id": np.arange(count),
        "n": random.integers(0, 1_000, count),
        "x": random.normal(size=count),
        "place": pa.array([f"place {number % 50}" for number in range(count)]),
        "at": pa.array(random.integers(0, 2**50, count)).cast(pa.timestamp("us", tz="UTC")),
    }
    return pa.table(columns).cast(definition.schema.to_arrow())


def _data_file(storage: LocalStorage, definition: DatasetDefinition, count: int) -> DataFile:
    schema = definition.schema
    path = "data/part.parquet"
    with create_parquet(storage, path, schema.to_arrow(), row_group_rows=BASE_ROW_GROUP_ROWS) as sink:
        sink.write(_rows(definition, count))
        sink.finish()
    entry = sink.stored(schema.id)
    return DataFile(
        path=path,
        size_bytes=entry.size_bytes,
        checksum=entry.checksum,
        row_count=count,
        schema_id=schema.id,
        file_group="group",
        slot=Slot(partition_path="", bucket=0),
        statistics=column_statistics(sink.metadata[0], schema),
        added_version=1,
        written_version=1,
        layout=LAYOUT,
    )


def measure(count: int, runs: int) -> list[dict[str, Any]]:
    """Rows of the data file in a processor second, the best of some runs, in each case."""
    pa.set_cpu_count(1)
    fields = [CreateField(name=name, type=kind) for name, kind in _COLUMNS.items()]
    definition = define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=fields)))
    figures = []
    with TemporaryDirectory(prefix="headwater-bench-") as folder:
        storage = LocalStorage(Path(folder))
        file = _data_file(storage, definition, count)
        slices = SliceReader(ParquetReader(storage), VectorReader(storage))
        for name, access in _CASES.items():
            bound = bind_access(access, definition.schema, definition.schema)
            view = FileView(definition=definition, access=access, bound=bound, file_schema=definition.schema)
            rendering = DataFileRendering(slices=slices, source=file, file_view=view)
            times = []
            for _ in range(runs):
                start = time.process_time()
                rendering.write(HashingSink(_Counter()))
                times.append(time.process_time() - start)
            figures.append({"case": name, "rows a core and second": round(count / min(times))})
    return figures


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=2_000_000, help="rows of the file")
    options.add_argument("--runs", type=int, default=5, help="runs of each case")
    chosen = options.parse_args()
    publish("rendering", {"rows": chosen.rows, "runs": chosen.runs}, measure(chosen.rows, chosen.runs))


if __name__ == "__main__":
    main()
