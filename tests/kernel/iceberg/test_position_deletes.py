"""Position-delete files have the rows of the vector, the ids of the specification, and the same bytes each time."""

from __future__ import annotations

import io

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.kernel.format.index.deletion_vector import positions_set
from app.kernel.iceberg.position_deletes import FILE_PATH_ID, POSITION_ID, position_deletes

LOCATION = 's3://hw-tables/ds/v2/data/0/country=Öster%2Freich/a "b".parquet'


@pytest.mark.parametrize(
    "positions", [[0], [9, 3, 7], range(70_000), [2**32 - 1], range(0, 10**7, 3)], ids=len
)
def test_file_has_the_positions(positions):
    vector = positions_set(np.array(positions, dtype=np.int64))
    data = position_deletes(vector, LOCATION)
    assert data == position_deletes(vector, LOCATION)
    table = pq.read_table(io.BytesIO(data))
    assert table["pos"].to_numpy().tolist() == list(vector)
    assert table["file_path"].unique().to_pylist() == [LOCATION]
    # A dense vector takes less than a bit and a half for each position.
    assert len(data) < 1_000 + len(vector) // 2


def test_columns_have_the_ids_and_bounds_of_the_specification():
    file = pq.ParquetFile(io.BytesIO(position_deletes(positions_set(np.array([4, 9])), LOCATION)))
    ids = {each.name: int(each.metadata[b"PARQUET:field_id"]) for each in file.schema_arrow}
    assert (
        ids == {"file_path": FILE_PATH_ID, "pos": POSITION_ID} == {"file_path": 2147483546, "pos": 2147483545}
    )
    assert [(each.type, each.nullable) for each in file.schema_arrow] == [
        (pa.string(), False),
        (pa.int64(), False),
    ]
    location, position = (file.metadata.row_group(0).column(place).statistics for place in (0, 1))
    assert (location.min, location.max) == (LOCATION, LOCATION)
    assert (position.min, position.max) == (4, 9)


def test_duckdb_reads_the_file(tmp_path):
    path = tmp_path / "deletes.parquet"
    path.write_bytes(position_deletes(positions_set(np.arange(0, 5_000, 7)), LOCATION))
    with duckdb.connect() as connection:
        found = connection.execute("select * from read_parquet(?)", [str(path)]).fetchall()
    assert found == [(LOCATION, position) for position in range(0, 5_000, 7)]
