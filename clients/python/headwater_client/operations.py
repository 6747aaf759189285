"""All operations of the service, as coroutines over a driver, shared by the blocking and the async client."""

from __future__ import annotations

from headwater_client.calls.administration import AdministrationCalls
from headwater_client.calls.any_request import AnyRequestCalls
from headwater_client.calls.consumers import ConsumerCalls
from headwater_client.calls.datasets import DatasetCalls
from headwater_client.calls.explain import ExplainCalls
from headwater_client.calls.exports import ExportCalls
from headwater_client.calls.overview import OverviewCalls
from headwater_client.calls.partitions import PartitionCalls
from headwater_client.calls.quarantine import QuarantineCalls
from headwater_client.calls.reading.read_jobs import ReadJobCalls
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


class Operations(
    DatasetCalls,
    WriteCalls,
    TransactionCalls,
    QuarantineCalls,
    ExplainCalls,
    VerifyCalls,
    TimeTravelCalls,
    ConsumerCalls,
    ExportCalls,
    WebhookCalls,
    ShareCalls,
    ViewCalls,
    SourceCalls,
    OverviewCalls,
    PartitionCalls,
    ReadCalls,
    ReadJobCalls,
    ScanCalls,
    UsageCalls,
    AdministrationCalls,
    AnyRequestCalls,
):
    """One method for each operation."""
