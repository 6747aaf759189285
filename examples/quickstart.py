"""Register, upsert, correct a row, follow the feed, look back in time, with the typed client.

HEADWATER_URL=http://127.0.0.1:8080 HEADWATER_API_KEY=$(cat .headwater/operator.key) \\
    .venv/bin/python examples/quickstart.py
"""

import time
from decimal import Decimal
from itertools import islice

from headwater_client import Headwater, NewDataset, NewField, Problem

ORDERS = NewDataset(
    name=f"quickstart_py_{time.time_ns()}",
    fields=(
        NewField(name="id", type="int64"),
        NewField(name="item", type="string"),
        NewField(name="price", type="decimal(10, 2)"),
    ),
    record_key=("id",),
)

with Headwater.from_environment() as headwater:
    orders = headwater.create_dataset(ORDERS)
    print(f"registered {orders.name}")

    rows = [
        {"id": 1, "item": "lamp", "price": Decimal("19.90")},
        {"id": 2, "item": "desk", "price": Decimal("240.00")},
    ]
    # Sent again with the same key, a write is done once.
    first = headwater.write_rows(orders, rows, idempotency_key="first", wait=60)
    assert headwater.write_rows(orders, rows, idempotency_key="first").id == first.id
    corrected = headwater.write_rows(orders, [{"id": 1, "item": "lamp", "price": Decimal("17.50")}], wait=60)
    print(f"committed versions {first.committed_version} and {corrected.committed_version}")

    # A consumer that follows waits for more; this one leaves after the four changes there are.
    for change in islice(headwater.changes(orders, since=0, follow=True), 4):
        print(f"  {change.offset} {change.op} {change.row}")

    print(f"now:          {list(headwater.rows(orders))}")
    print(f"at version 1: {list(headwater.rows(orders, version=1))}")

    try:
        headwater.write_rows(orders, [{"id": None, "item": "chair", "price": Decimal("80.00")}])
    except Problem as problem:
        print(f"refused: {problem}")
