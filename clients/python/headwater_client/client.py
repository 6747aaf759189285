"""The client."""

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
