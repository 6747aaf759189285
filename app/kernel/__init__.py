"""What a table, a commit and a change are. Pure values and rules: no framework, no store, no I/O.

    format         what a dataset is, and how its rows and files are laid out
    codecs         JSON, NDJSON, CSV, Arrow and Parquet to rows and back
    sql            conditions (`where`) and queries (views)
    commit         plans, merge and conflict rules
    changelog      changes as values: selection, delivery formats, corrections, verification
    iceberg        tables in Iceberg's format: schemas, partition specs, manifests and metadata
    derivation     rows that SQL computes: the request to the engine, and its interface
    paging, arrow  opaque page tokens; Arrow without pandas

It imports nothing of the other wings. What it needs of the world, its callers pass in: files as tables of Arrow, rows
as they are stored. So every rule is tested by itself, and an engine, a worker and the API run the same one.

A dataset, a write to it, and the changes that the write makes of the live rows:

>>> import pyarrow as pa
>>> from app.kernel.codecs import decode_json_rows
>>> from app.kernel.commit.merge.merge import merge
>>> from app.kernel.commit.write_plan import WriteIntent
>>> from app.kernel.format.definition.dataset_definition import define_dataset
>>> from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
>>> from app.kernel.format.operation import Operation
>>> from app.kernel.format.rows.meta_columns import stored_schema
>>> from app.kernel.format.rows.staging import JOB_COLUMN, in_slot_order, with_ops
>>> fields = (CreateField(name="id", type="int64", nullable=False), CreateField(name="state", type="string"))
>>> orders = define_dataset(
...     CreateDataset(name="orders", schema=CreateSchema(fields=fields), record_key=("id",))
... )
>>> def upsert(live: pa.Table, body: bytes):
...     rows = with_ops(decode_json_rows(body, orders.schema), Operation.UPSERT, orders)
...     staged, _ = in_slot_order(rows, orders)
...     incoming = staged.append_column(JOB_COLUMN, pa.array([0] * rows.num_rows, pa.int64()))
...     return merge(orders, live, incoming, {0: WriteIntent(operation=Operation.UPSERT)})
>>> first = upsert(
...     stored_schema(orders).empty_table(), b'[{"id": 1, "state": "new"}, {"id": 2, "state": "new"}]'
... )
>>> second = upsert(first.rows, b'[{"id": 2, "state": "paid"}]')
>>> second.counts[0].updated
1

An update is two changes: correct-from (2) with the row before, and correct-to (3) with the row after.

>>> second.changes.select(["_hw_op", "id", "state"]).to_pylist()
[{'_hw_op': 2, 'id': 2, 'state': 'new'}, {'_hw_op': 3, 'id': 2, 'state': 'paid'}]
"""
