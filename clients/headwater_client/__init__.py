"""The typed Python client: register datasets, write rows in any form, wait for jobs, follow the feed, read tables.

    from clients.headwater_client import Headwater, NewDataset, NewField

    with Headwater(url, api_key) as headwater:
        orders = headwater.create_dataset(
            NewDataset(name="orders", fields=(NewField(name="id", type="int64"),), record_key=("id",))
        )
        headwater.write_rows(orders, [{"id": 1}], wait=30)
        for change in headwater.changes(orders, since=0):
            print(change.offset, change.op, change.row)

It needs httpx, msgspec and pyarrow, and nothing of the service.
"""

from clients.headwater_client.client import Headwater
from clients.headwater_client.feed import Since
from clients.headwater_client.pages import ChangePage, ChangeTable, RowTable
from clients.headwater_client.problem import FieldError, JobUnfinished, Problem
from clients.headwater_client.transport import Body
from clients.headwater_client.values import (
    Change,
    Column,
    Columns,
    Dataset,
    Format,
    Instant,
    Job,
    NewDataset,
    NewField,
    Operation,
    Progress,
    RowCounts,
    Upload,
)

__all__ = [
    "Body",
    "Change",
    "ChangePage",
    "ChangeTable",
    "Column",
    "Columns",
    "Dataset",
    "FieldError",
    "Format",
    "Headwater",
    "Instant",
    "Job",
    "JobUnfinished",
    "NewDataset",
    "NewField",
    "Operation",
    "Problem",
    "Progress",
    "RowCounts",
    "RowTable",
    "Since",
    "Upload",
]
