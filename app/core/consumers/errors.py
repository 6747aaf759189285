"""Errors of positions in feeds."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class ConsumerLeased(HeadwaterError):
    """Another member holds the consumer's lease. Facts: `member`, `until`, `retry_after_seconds`."""

    code = "consumer-leased"
    title = "Another member holds the lease of the consumer"
    may_pass = True


class LeaseLost(HeadwaterError):
    """The token does not match the consumer's lease: the lease was released, or another member has taken it."""

    code = "lease-lost"
    title = "The lease is no longer held"


class ConsumerManaged(HeadwaterError):
    """The position belongs to a webhook, an export or a view, which moves it itself. Fact: `kind`."""

    code = "consumer-managed"
    title = "The service moves this position itself"
