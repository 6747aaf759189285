"""The client."""

from __future__ import annotations

from clients.headwater_client.consumers import ConsumerCalls
from clients.headwater_client.datasets import DatasetCalls
from clients.headwater_client.explain import ExplainCalls
from clients.headwater_client.exports import ExportCalls
from clients.headwater_client.overview import OverviewCalls
from clients.headwater_client.partitions import PartitionCalls
from clients.headwater_client.quarantine import QuarantineCalls
from clients.headwater_client.read_jobs import ReadJobCalls
from clients.headwater_client.reads import ReadCalls
from clients.headwater_client.time_travel import TimeTravelCalls
from clients.headwater_client.transactions import TransactionCalls
from clients.headwater_client.verify import VerifyCalls
from clients.headwater_client.views import ViewCalls
from clients.headwater_client.webhooks import WebhookCalls
from clients.headwater_client.writes import WriteCalls


class Headwater(
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
    """A connection to the service with one credential, which decides the tenant.

    Requests that are safe to repeat are repeated while the service cannot be reached or asks to come back
    later. That holds for writes as well: each has an idempotency key, the caller's or one made up for the
    call, or is a numbered batch, so it is done once however often it is sent. A dataset is given by its
    value, its id or its name.
    Methods raise Problem where the service refuses, and httpx.TransportError where it cannot be reached.
    """
