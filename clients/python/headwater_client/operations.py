"""All operations of the service, as coroutines over a driver, shared by the blocking and the async client."""

from __future__ import annotations

from headwater_client.consumers import ConsumerCalls
from headwater_client.datasets import DatasetCalls
from headwater_client.explain import ExplainCalls
from headwater_client.exports import ExportCalls
from headwater_client.overview import OverviewCalls
from headwater_client.partitions import PartitionCalls
from headwater_client.quarantine import QuarantineCalls
from headwater_client.read_jobs import ReadJobCalls
from headwater_client.reads import ReadCalls
from headwater_client.time_travel import TimeTravelCalls
from headwater_client.transactions import TransactionCalls
from headwater_client.verify import VerifyCalls
from headwater_client.views import ViewCalls
from headwater_client.webhooks import WebhookCalls
from headwater_client.writes import WriteCalls


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
    ViewCalls,
    OverviewCalls,
    PartitionCalls,
    ReadCalls,
    ReadJobCalls,
):
    """One method for each operation."""
