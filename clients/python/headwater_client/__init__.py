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
from headwater_client.calls.download import DamagedDownload
from headwater_client.calls.quarantine import sent_bytes
from headwater_client.calls.reading.read_jobs import ReadOptions
from headwater_client.calls.reading.scans import ScanOptions
from headwater_client.calls.transactions import DatasetWrite
from headwater_client.client import Changes, Headwater, Table
from headwater_client.models import (
    AddField,
    Change,
    Column,
    Columns,
    Correction,
    Dataset,
    DatasetIdentity,
    DatasetSchema,
    Delivery,
    DropField,
    Export,
    ExportFile,
    ExportRun,
    ExportRunSummary,
    FeedConsumer,
    Field,
    FieldError,
    Format,
    Grant,
    Instant,
    Job,
    Lag,
    MaxLag,
    MetastoreReport,
    NamedVersion,
    Operation,
    Overwrite,
    Partition,
    PartitionEvent,
    PartitionMark,
    Progress,
    QuarantinedRecord,
    RelaxField,
    RenameField,
    ReorderFields,
    ResultFile,
    RowCounts,
    Scan,
    ScanPart,
    SchemaChange,
    Source,
    Transaction,
    Upload,
    View,
    ViewInput,
    Webhook,
    WebhookAttempt,
    WebhookTest,
    WebhookWithSecret,
    WidenField,
    WriteExplanation,
)
from headwater_client.models import ChangesPage as ChangePage
from headwater_client.models import CreateBucket as Bucket
from headwater_client.models import CreateField as NewField
from headwater_client.models import CreateRetention as Retention
from headwater_client.models import CreateSchema as NewSchema
from headwater_client.models import CreateSequenceGroup as SequenceGroup
from headwater_client.models import CreateSource as NewSource
from headwater_client.models import CreateTable as SourceTable
from headwater_client.models import CreateView as NewView
from headwater_client.models import CreateWithRows as NewTable
from headwater_client.models import File as TableFile
from headwater_client.models import Lease as ConsumerLease
from headwater_client.models import LeaseHolder as Holder
from headwater_client.models import ReadFiles as ResultFiles
from headwater_client.models import ReadOrder as OrderBy
from headwater_client.models import Statistics as TableStatistics
from headwater_client.new_dataset import NewDataset
from headwater_client.problem import JobUnfinished, Problem, TransactionUnfinished
from headwater_client.tables import AsyncChanges, AsyncTable
from headwater_client.transport.driver import Body
from headwater_client.transport.pages import ChangeTable, RowTable
from headwater_client.transport.walk import Since
from headwater_client.webhook_signature import InvalidSignature, verify_webhook
from headwater_client.write_options import WriteOptions

__all__ = [
    "AddField",
    "ArrowData",
    "AsyncChanges",
    "AsyncHeadwater",
    "AsyncTable",
    "Body",
    "Bucket",
    "Change",
    "ChangePage",
    "ChangeTable",
    "Changes",
    "Column",
    "Columns",
    "ConsumerLease",
    "Correction",
    "DamagedDownload",
    "Dataset",
    "DatasetIdentity",
    "DatasetSchema",
    "DatasetWrite",
    "Delivery",
    "DropField",
    "Export",
    "ExportFile",
    "ExportRun",
    "ExportRunSummary",
    "FeedConsumer",
    "Field",
    "FieldError",
    "Format",
    "Grant",
    "Headwater",
    "Holder",
    "Instant",
    "InvalidSignature",
    "Job",
    "JobUnfinished",
    "Lag",
    "MaxLag",
    "MetastoreReport",
    "MissingPackage",
    "NamedVersion",
    "NewDataset",
    "NewField",
    "NewSchema",
    "NewSource",
    "NewTable",
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
    "Scan",
    "ScanOptions",
    "ScanPart",
    "SchemaChange",
    "SequenceGroup",
    "Since",
    "Source",
    "SourceTable",
    "Table",
    "TableFile",
    "TableStatistics",
    "Transaction",
    "TransactionUnfinished",
    "Upload",
    "View",
    "ViewInput",
    "Webhook",
    "WebhookAttempt",
    "WebhookTest",
    "WebhookWithSecret",
    "WidenField",
    "WriteExplanation",
    "WriteOptions",
    "sent_bytes",
    "verify_webhook",
]
