"""The blocking client: every operation runs to its end in the calling thread."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from datetime import datetime
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import httpx2

from headwater_client.calls.administration import AdministrationCalls
from headwater_client.calls.any_request import AnyRequestCalls
from headwater_client.calls.consumers import ConsumerCalls
from headwater_client.calls.datasets import DatasetCalls
from headwater_client.calls.explain import ExplainCalls
from headwater_client.calls.exports import ExportCalls
from headwater_client.calls.jobs import JobCalls
from headwater_client.calls.overview import OverviewCalls
from headwater_client.calls.partitions import PartitionCalls
from headwater_client.calls.quarantine import QuarantineCalls
from headwater_client.calls.reading.read_jobs import ReadJobCalls, ReadOptions
from headwater_client.calls.reading.reads import ReadCalls
from headwater_client.calls.reading.scans import ScanCalls
from headwater_client.calls.shares import ShareCalls
from headwater_client.calls.sources import SourceCalls
from headwater_client.calls.time_travel import TimeTravelCalls
from headwater_client.calls.transactions import TransactionCalls
from headwater_client.calls.usage import UsageCalls
from headwater_client.calls.verify import VerifyCalls
from headwater_client.calls.views import ViewCalls
from headwater_client.calls.webhooks import WebhookCalls
from headwater_client.calls.writes import WriteCalls
from headwater_client.models import Dataset
from headwater_client.operations import Operations
from headwater_client.tables import AsyncChanges, AsyncTable, AsyncTableValues
from headwater_client.transport.driver import BlockingDriver, credentials
from headwater_client.transport.walk import FeedSince

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Item = TypeVar("Item")


def finished(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine over a `BlockingDriver`, which never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    coroutine.close()
    raise RuntimeError("an operation of the blocking client suspended")


def blocking(
    operation: Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, Arguments], Result]:
    """The method of `Headwater` that returns the result of an operation."""

    @wraps(operation)
    def call(self: Any, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return finished(operation(self._operations, *args, **kwargs))

    return call


def iterating(
    operation: Callable[Concatenate[Any, Arguments], AsyncGenerator[Item, None]],
) -> Callable[Concatenate[Any, Arguments], Generator[Item, None, None]]:
    """The method of `Headwater` that iterates over the items of an operation."""

    @wraps(operation)
    def call(self: Any, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Generator[Item, None, None]:
        items = operation(self._operations, *args, **kwargs)
        try:
            while True:
                try:
                    item = finished(items.__anext__())
                except StopAsyncIteration:
                    return
                yield item
        finally:
            finished(items.aclose())

    # What `help` shows. Annotations are texts, because the module defers them.
    signature = inspect.signature(operation)
    item = signature.return_annotation.removeprefix("AsyncGenerator[").removesuffix(", None]")
    call.__signature__ = signature.replace(return_annotation=f"Iterator[{item}]")  # type: ignore[attr-defined]
    return call


class TableValues:
    """What is read as one table. All of its rows are in memory."""

    def __init__(self, values: AsyncTableValues) -> None:
        self._operations = values

    read = blocking(AsyncTableValues.read)
    to_arrow = blocking(AsyncTableValues.to_arrow)
    to_pandas = blocking(AsyncTableValues.to_pandas)
    to_polars = blocking(AsyncTableValues.to_polars)
    to_duckdb = blocking(AsyncTableValues.to_duckdb)


class Changes(TableValues):
    """The changes of a dataset as a table, whose columns `ChangeTable` lists."""

    follow = iterating(AsyncChanges.follow)


class Table(TableValues):
    """A dataset as a table: see `ReadOptions`."""

    def __init__(self, table: AsyncTable) -> None:
        super().__init__(table)
        self._table = table

    def _repr_html_(self) -> str:
        """How notebooks show the table: what would be read. Nothing is requested."""
        return self._table._repr_html_()

    def changes(
        self,
        *,
        since: FeedSince | None = None,
        since_version: int | None = None,
        since_time: datetime | None = None,
        until: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
    ) -> Changes:
        """The changes from a position on, up to `until`: see `change_pages`. The options of the table do not apply."""
        return Changes(
            self._table.changes(
                since=since,
                since_version=since_version,
                since_time=since_time,
                until=until,
                columns=columns,
                where=where,
                partitions=partitions,
            )
        )


class Headwater:
    """A connection to the service with one credential, which determines the tenant.

    Requests that are safe to repeat are retried while the service cannot be reached or is busy. That includes those
    that write or create something: each has an idempotency key, the caller's or one generated for the call, or is a
    numbered batch, so it is executed once however often it is sent. A dataset is specified by its value, its id or its
    name. Methods raise Problem if the service rejects a request, and httpx2.TransportError if it cannot be reached.
    """

    def __init__(self, url: str, api_key: str, *, transport: httpx2.BaseTransport | None = None) -> None:
        self._driver = BlockingDriver(url, api_key, transport)
        self._operations = Operations(self._driver)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The client for HEADWATER_URL and HEADWATER_API_KEY. Raises LookupError unless both are set."""
        return cls(*credentials(environment))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._driver.close()

    def table(self, dataset: Dataset | str, *, wait: float = 600, **options: Unpack[ReadOptions]) -> Table:
        """A dataset as a table, at a version, for pyarrow, pandas, polars or DuckDB: see `ReadOptions`."""
        return Table(AsyncTable(self._operations, dataset, wait, options))

    # Datasets and their schemas
    create_dataset = blocking(DatasetCalls.create_dataset)
    get_dataset = blocking(DatasetCalls.get_dataset)
    datasets = iterating(DatasetCalls.datasets)
    delete_dataset = blocking(DatasetCalls.delete_dataset)
    rename_dataset = blocking(DatasetCalls.rename_dataset)
    change_schema = blocking(DatasetCalls.change_schema)
    change_retention = blocking(DatasetCalls.change_retention)
    change_vocabulary = blocking(DatasetCalls.change_vocabulary)
    change_services = blocking(DatasetCalls.change_services)
    change_compression = blocking(DatasetCalls.change_compression)
    change_keep_seconds = blocking(DatasetCalls.change_keep_seconds)
    change_description = blocking(DatasetCalls.change_description)
    change_labels = blocking(DatasetCalls.change_labels)
    get_schema = blocking(DatasetCalls.get_schema)
    schemas = iterating(DatasetCalls.schemas)

    # Writes
    write_rows = blocking(WriteCalls.write_rows)
    write_arrow = blocking(WriteCalls.write_arrow)
    write = blocking(WriteCalls.write)
    upload = blocking(WriteCalls.upload)
    create_upload_link = blocking(WriteCalls.create_upload_link)
    write_upload = blocking(WriteCalls.write_upload)
    delete_where = blocking(WriteCalls.delete_where)
    delete_partitions = blocking(WriteCalls.delete_partitions)
    compact = blocking(WriteCalls.compact)
    clean = blocking(WriteCalls.clean)
    cluster = blocking(WriteCalls.cluster)
    analyze = blocking(WriteCalls.analyze)

    # Transactions
    transact = blocking(TransactionCalls.transact)
    get_transaction = blocking(TransactionCalls.get_transaction)
    wait_for_transaction = blocking(TransactionCalls.wait_for_transaction)

    # Quarantine
    quarantine = iterating(QuarantineCalls.quarantine)
    redrive = blocking(QuarantineCalls.redrive)
    redrive_job = blocking(QuarantineCalls.redrive_job)
    discard_quarantine = blocking(QuarantineCalls.discard_quarantine)

    # Explanations of writes
    explain_keys = blocking(ExplainCalls.explain_keys)
    explain_write = blocking(ExplainCalls.explain_write)

    # Jobs
    jobs = iterating(JobCalls.jobs)
    get_job = blocking(JobCalls.get_job)
    wait = blocking(JobCalls.wait)
    cancel = blocking(JobCalls.cancel)

    # The feed, and the table
    changes = iterating(ReadCalls.changes)
    change_pages = iterating(ReadCalls.change_pages)
    change_tables = iterating(ReadCalls.change_tables)
    corrections = iterating(ReadCalls.corrections)
    rows = iterating(ReadCalls.rows)
    row_tables = iterating(ReadCalls.row_tables)
    row = blocking(ReadCalls.row)
    lookup = blocking(ReadCalls.lookup)

    # Read jobs
    read = blocking(ReadJobCalls.read)
    read_result = blocking(ReadJobCalls.read_result)
    read_to_files = blocking(ReadJobCalls.read_to_files)
    start_read = blocking(ReadJobCalls.start_read)
    result_files = blocking(ReadJobCalls.result_files)
    download_result = blocking(ReadJobCalls.download_result)
    download_result_file = blocking(ReadJobCalls.download_result_file)

    # Scans
    scan = blocking(ScanCalls.scan)
    scan_unless_job = blocking(ScanCalls.scan_unless_job)
    read_scan = blocking(ScanCalls.read_scan)
    download_scan_part = blocking(ScanCalls.download_scan_part)
    read_scan_part_range = blocking(ScanCalls.read_scan_part_range)

    # Consumers
    create_consumer = blocking(ConsumerCalls.create_consumer)
    get_consumer = blocking(ConsumerCalls.get_consumer)
    consumers = iterating(ConsumerCalls.consumers)
    commit = blocking(ConsumerCalls.commit)
    bound_consumer = blocking(ConsumerCalls.bound_consumer)
    delete_consumer = blocking(ConsumerCalls.delete_consumer)
    lease_consumer = blocking(ConsumerCalls.lease_consumer)
    release_consumer = blocking(ConsumerCalls.release_consumer)
    consume = iterating(ConsumerCalls.consume)

    # Named versions, restores, comparisons
    create_savepoint = blocking(TimeTravelCalls.create_savepoint)
    create_tag = blocking(TimeTravelCalls.create_tag)
    savepoints = iterating(TimeTravelCalls.savepoints)
    tags = iterating(TimeTravelCalls.tags)
    delete_savepoint = blocking(TimeTravelCalls.delete_savepoint)
    delete_tag = blocking(TimeTravelCalls.delete_tag)
    restore = blocking(TimeTravelCalls.restore)
    roll_back = blocking(TimeTravelCalls.roll_back)
    compare = blocking(TimeTravelCalls.compare)

    # Timelines, files and statistics
    timeline = iterating(OverviewCalls.timeline)
    files = iterating(OverviewCalls.files)
    partitions = iterating(OverviewCalls.partitions)
    statistics = blocking(OverviewCalls.statistics)

    # Partitions
    end_partitions = blocking(PartitionCalls.end_partitions)
    partition_events = iterating(PartitionCalls.partition_events)
    metastore_report = blocking(PartitionCalls.metastore_report)

    # Exports
    create_export = blocking(ExportCalls.create_export)
    exports = iterating(ExportCalls.exports)
    get_export = blocking(ExportCalls.get_export)
    pause_export = blocking(ExportCalls.pause_export)
    resume_export = blocking(ExportCalls.resume_export)
    schedule_export = blocking(ExportCalls.schedule_export)
    delete_export = blocking(ExportCalls.delete_export)
    run_export = blocking(ExportCalls.run_export)
    export_runs = iterating(ExportCalls.export_runs)
    get_export_run = blocking(ExportCalls.get_export_run)
    wait_for_export = blocking(ExportCalls.wait_for_export)
    download_export = blocking(ExportCalls.download_export)

    # Webhooks
    create_webhook = blocking(WebhookCalls.create_webhook)
    get_webhook = blocking(WebhookCalls.get_webhook)
    webhooks = iterating(WebhookCalls.webhooks)
    change_webhook = blocking(WebhookCalls.change_webhook)
    delete_webhook = blocking(WebhookCalls.delete_webhook)
    rotate_webhook_secret = blocking(WebhookCalls.rotate_webhook_secret)
    try_webhook = blocking(WebhookCalls.try_webhook)
    webhook_alerts = blocking(WebhookCalls.webhook_alerts)
    webhook_attempts = blocking(WebhookCalls.webhook_attempts)
    deliveries = iterating(WebhookCalls.deliveries)
    get_delivery = blocking(WebhookCalls.get_delivery)
    redeliver = blocking(WebhookCalls.redeliver)
    redeliver_dead = blocking(WebhookCalls.redeliver_dead)

    # Shares
    create_share = blocking(ShareCalls.create_share)
    get_share = blocking(ShareCalls.get_share)
    shares = iterating(ShareCalls.shares)
    change_share = blocking(ShareCalls.change_share)
    delete_share = blocking(ShareCalls.delete_share)
    create_recipient = blocking(ShareCalls.create_recipient)
    get_recipient = blocking(ShareCalls.get_recipient)
    recipients = iterating(ShareCalls.recipients)
    change_recipient = blocking(ShareCalls.change_recipient)
    rotate_recipient_token = blocking(ShareCalls.rotate_recipient_token)
    delete_recipient = blocking(ShareCalls.delete_recipient)

    # Views
    create_view = blocking(ViewCalls.create_view)
    get_view = blocking(ViewCalls.get_view)
    views = iterating(ViewCalls.views)
    refresh_view = blocking(ViewCalls.refresh_view)
    find_origins = blocking(ViewCalls.find_origins)
    pause_view = blocking(ViewCalls.pause_view)
    delete_view = blocking(ViewCalls.delete_view)

    # Sources
    create_source = blocking(SourceCalls.create_source)
    get_source = blocking(SourceCalls.get_source)
    sources = iterating(SourceCalls.sources)
    start_source_round = blocking(SourceCalls.start_source_round)
    pause_source = blocking(SourceCalls.pause_source)
    limit_source = blocking(SourceCalls.limit_source)
    reset_source = blocking(SourceCalls.reset_source)
    delete_source = blocking(SourceCalls.delete_source)

    # Usage and quotas
    usage = iterating(UsageCalls.usage)
    tenant_quotas = blocking(UsageCalls.tenant_quotas)
    change_quotas = blocking(UsageCalls.change_quotas)

    # Tenants and keys
    me = blocking(AdministrationCalls.me)
    create_tenant = blocking(AdministrationCalls.create_tenant)
    tenants = iterating(AdministrationCalls.tenants)
    get_tenant = blocking(AdministrationCalls.get_tenant)
    suspend_tenant = blocking(AdministrationCalls.suspend_tenant)
    resume_tenant = blocking(AdministrationCalls.resume_tenant)
    delete_tenant = blocking(AdministrationCalls.delete_tenant)
    create_key = blocking(AdministrationCalls.create_key)
    api_keys = iterating(AdministrationCalls.api_keys)
    get_key = blocking(AdministrationCalls.get_key)
    revoke_key = blocking(AdministrationCalls.revoke_key)
    audit = iterating(AdministrationCalls.audit)

    # Verifications
    verify = blocking(VerifyCalls.verify)

    # All else
    request = blocking(AnyRequestCalls.request)
