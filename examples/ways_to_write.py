"""A shop's stock, orders and shipments, written in every way that data arrive, with the typed client.

HEADWATER_URL=http://127.0.0.1:8080 HEADWATER_API_KEY=$(cat .headwater/operator.key) \\
    .venv/bin/python examples/ways_to_write.py
"""

import time

from headwater_client import (
    Dataset,
    DatasetWrite,
    Headwater,
    NewDataset,
    NewField,
    Problem,
    WriteOptions,
)

RUN = time.time_ns()


def register(headwater: Headwater, name: str, key: str, **columns: str) -> Dataset:
    """A dataset with a key whose updates cost what they change: old rows are marked, not rewritten."""
    fields = tuple(NewField(name=column, type=kind) for column, kind in columns.items())
    return headwater.create_dataset(
        NewDataset(name=f"{name}_{RUN}", fields=fields, record_key=(key,), table_type="merge_on_read")
    )


def show(title: str, lines: object) -> None:
    """Prints a heading and what belongs below it."""
    print(f"== {title}")
    for line in lines if isinstance(lines, list) else [lines]:
        print(f"  {line}")


with Headwater.from_environment() as headwater:
    stock = register(headwater, "stock", "item", item="string", pieces="int32")

    # The warehouse sends its whole stock every night. The service determines what has changed, and the feed has it.
    headwater.write_rows(
        stock,
        [{"item": "lamp", "pieces": 4}, {"item": "desk", "pieces": 1}, {"item": "rug", "pieces": 7}],
        operation="snapshot",
        wait=60,
    )
    night = headwater.write_rows(
        stock,
        [{"item": "lamp", "pieces": 3}, {"item": "rug", "pieces": 7}, {"item": "vase", "pieces": 2}],
        operation="snapshot",
        wait=60,
    )
    show("what the second snapshot changed", night.rows)
    # Changes of different keys have no particular order within a commit, so they are sorted here.
    changes = [change for change in headwater.changes(stock) if change.version == night.committed_version]
    changes.sort(key=lambda change: change.row["item"])
    show("in the feed", [f"{change.op} {change.row}" for change in changes])

    # The orders live in another database, and Debezium follows its log: what happened arrives as changes.
    orders = register(headwater, "orders", "id", id="int64", item="string", state="string")
    new = {"id": 1, "item": "lamp", "state": "new"}
    paid = {**new, "state": "paid"}
    dropped = {"id": 2, "item": "rug", "state": "new"}
    headwater.write_rows(
        orders,
        [
            {"op": "c", "before": None, "after": new},
            {"op": "c", "before": None, "after": dropped},
            {"op": "u", "before": new, "after": paid},
            {"op": "d", "before": dropped, "after": None},
        ],
        operation="changelog",
        wait=60,
    )
    show("orders", list(headwater.rows(orders)))

    # A shop sends its orders by hand. A bad record is quarantined; the valid ones are committed.
    sent = [{"id": 3, "item": "vase", "state": "new"}, {"id": "four", "item": "rug", "state": "new"}]
    job = headwater.write_rows(orders, sent, options=WriteOptions(on_error="quarantine"), wait=60)
    [bad] = headwater.quarantine(orders, job=job)
    show("in quarantine", [f"record {bad.position}: {bad.errors[0].detail}", bad.payload])
    repaired = bad.payload.replace('"four"', "4")
    redriven = headwater.redrive(orders, {bad.id: repaired}, wait=60)
    show("redriven", f"{redriven.rows.inserted} inserted")

    # Shipping changes both datasets, all or nothing. The expected version is the one that the decision was based on.
    version = headwater.get_dataset(stock).version
    shipped = headwater.transact(
        [
            DatasetWrite(dataset=orders, rows=[{**paid, "state": "shipped"}]),
            DatasetWrite(
                dataset=stock,
                rows=[{"item": "lamp", "pieces": 2}],
                options=WriteOptions(expected_version=version),
            ),
        ],
        wait=60,
    )
    show("shipped", [f"{job.operation} committed" for job in shipped.jobs])
    try:
        headwater.transact(
            [
                DatasetWrite(dataset=orders, rows=[{"id": 3, "item": "vase", "state": "shipped"}]),
                DatasetWrite(
                    dataset=stock,
                    rows=[{"item": "vase", "pieces": 1}],
                    # Another sale has been committed since, so the stock must be read again.
                    options=WriteOptions(expected_version=version),
                ),
            ],
            wait=60,
        )
    except Problem as problem:
        show("refused", problem.code)

    # A compaction joins small files and drops rows that are only marked as deleted; it changes no row. In a table as
    # small as this one, writes have done so.
    compacted = headwater.compact(stock, wait=60)
    show("compacted", f"version {compacted.committed_version}")

    low = headwater.rows(stock, where="pieces <= 2", meta=True)
    few = sorted((row["item"], row["pieces"], row["_hw_record_key"]) for row in low)
    show("items to order", [f"{item}: {pieces} left ({key})" for item, pieces, key in few])
    show("stock on the first night", sorted(row["item"] for row in headwater.rows(stock, version=1)))
    show("orders in the end", sorted(f"{row['id']} {row['state']}" for row in headwater.rows(orders)))
