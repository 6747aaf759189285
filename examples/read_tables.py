"""A day of sales, read back whole, in order, by what changed, and to files, with the typed client.

HEADWATER_URL=http://127.0.0.1:8080 HEADWATER_API_KEY=$(cat .headwater/operator.key) \\
    .venv/bin/python examples/read_tables.py
"""

import tempfile
import time
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

from headwater_client import Headwater, NewDataset, NewField, OrderBy

FIELDS = (
    NewField(name="id", type="int64"),
    NewField(name="shop", type="string"),
    NewField(name="price", type="decimal(8,2)"),
)

with Headwater.from_environment() as headwater:
    sales = headwater.create_dataset(
        NewDataset(name=f"sales_{time.time_ns()}", fields=FIELDS, record_key=("id",))
    )
    rows = [{"id": n, "shop": "Ulm" if n % 3 else "Bonn", "price": f"{n % 7}.50"} for n in range(1_000)]
    headwater.write_rows(sales, rows, wait=60)

    dearest = headwater.read(
        sales,
        where="shop = 'Bonn'",
        order_by=[OrderBy(column="price", descending=True), "id"],
        columns=["id", "price"],
        limit=3,
        wait=60,
    )
    print("the dearest of Bonn:", [row["id"] for row in dearest.to_arrow().to_pylist()])

    # A few rows in an order need no job.
    by_id = headwater.rows(sales, order_by=[OrderBy(column="id", descending=True)], limit=3)
    print("the latest:", [row["id"] for row in islice(by_id, 3)])

    # What came since: as often as one likes, each time from the version of the last time.
    seen = headwater.get_dataset(sales).version
    headwater.write_rows(sales, [{"id": 0, "shop": "Bonn", "price": "9.90"}], wait=60)
    changed = headwater.read(sales, query="incremental", begin=seen, wait=60)
    print("changed since:", [(row["id"], str(row["price"])) for row in changed.to_arrow().to_pylist()])

    with tempfile.TemporaryDirectory() as folder:
        paths = headwater.read_to_files(sales, Path(folder), format="parquet", version=seen, wait=60)
        print("in files:", sum(pq.read_metadata(path).num_rows for path in paths), "rows")
