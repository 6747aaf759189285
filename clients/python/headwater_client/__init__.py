"""The typed Python client: register datasets, write in every way, wait for jobs, follow the feed, read tables.

    from headwater_client import Headwater, NewDataset, NewField

    with Headwater(url, api_key) as headwater:
        orders = headwater.create_dataset(
            NewDataset(name="orders", fields=(NewField(name="id", type="int64"),), record_key=("id",))
        )
        headwater.write_rows(orders, [{"id": 1}], wait=30)
        for change in headwater.changes(orders, since=0):
            print(change.offset, change.op, change.row)

`AsyncHeadwater` has the same methods for asyncio. Rows are returned as Python values, or as Arrow data for pyarrow,
pandas, polars or DuckDB, none of which is required.
"""

from headwater_client.arrow import ArrowData, MissingPackage
from headwater_client.async_client import AsyncHeadwater
from headwater_client.client import Headwater
from headwater_client.consumers import Consumer, ConsumerLease, Holder, Lag, MaxLag
from headwater_client.download import DamagedDownload
from headwater_client.driver import Body
from headwater_client.explain import WriteExplanation
from headwater_client.exports import (
    Export,
    ExportFile,
    ExportManifest,
    ExportRun,
)
from headwater_client.feed import Since
from headwater_client.overview import Instant, Partition, TableFile, TableStatistics
from headwater_client.pages import ChangePage, ChangeTable, RowTable
from headwater_client.partitions import MetastoreReport, PartitionEvent, PartitionMark
from headwater_client.problem import FieldError, JobUnfinished, Problem, TransactionUnfinished
from headwater_client.quarantine import QuarantinedRecord
from headwater_client.read_jobs import OrderBy, ReadOptions, ResultFile, ResultFiles
from headwater_client.schema_changes import (
    AddField,
    DropField,
    RelaxField,
    RenameField,
    ReorderFields,
    SchemaChange,
    WidenField,
)
from headwater_client.time_travel import NamedVersion
from headwater_client.transactions import DatasetWrite
from headwater_client.values import (
    Bucket,
    Change,
    Column,
    Columns,
    Dataset,
    DatasetIdentity,
    Field,
    Format,
    Job,
    NewDataset,
    NewField,
    Operation,
    Progress,
    Retention,
    RowCounts,
    Schema,
    SequenceGroup,
    Transaction,
    Upload,
)
from headwater_client.views import NewView, View, ViewInput
from headwater_client.webhooks import Delivery, Webhook, WebhookTest
from headwater_client.write_options import Overwrite, WriteOptions

__all__ = [
    "AddField",
    "ArrowData",
    "AsyncHeadwater",
    "Body",
    "Bucket",
    "Change",
    "ChangePage",
    "ChangeTable",
    "Column",
    "Columns",
    "Consumer",
    "ConsumerLease",
    "DamagedDownload",
    "Dataset",
    "DatasetIdentity",
    "DatasetWrite",
    "Delivery",
    "DropField",
    "Export",
    "ExportFile",
    "ExportManifest",
    "ExportRun",
    "Field",
    "FieldError",
    "Format",
    "Headwater",
    "Holder",
    "Instant",
    "Job",
    "JobUnfinished",
    "Lag",
    "MaxLag",
    "MetastoreReport",
    "MissingPackage",
    "NamedVersion",
    "NewDataset",
    "NewField",
    "NewView",
    "Operation",
    "OrderBy",
    "Overwrite",
    "Partition",
    "PartitionEvent",
    "PartitionMark",
    "Problem",
    "Progress",
    "QuarantinedRecord",
    "ReadOptions",
    "RelaxField",
    "RenameField",
    "ReorderFields",
    "ResultFile",
    "ResultFiles",
    "Retention",
    "RowCounts",
    "RowTable",
    "Schema",
    "SchemaChange",
    "SequenceGroup",
    "Since",
    "TableFile",
    "TableStatistics",
    "Transaction",
    "TransactionUnfinished",
    "Upload",
    "View",
    "ViewInput",
    "Webhook",
    "WebhookTest",
    "WidenField",
    "WriteExplanation",
    "WriteOptions",
]
