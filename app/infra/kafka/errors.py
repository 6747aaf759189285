"""Errors of brokers and topics, and of all else that a source reads from."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class SourceUnavailable(HeadwaterError):
    """What a source reads from is out of reach. The source tries again by itself. Fact: `source`, if known."""

    code = "source-unavailable"
    title = "The source is out of reach"


class SourceFailed(HeadwaterError):
    """What a source reads from returns something that it cannot use. The source waits until it is resumed. Facts: such
    as `item`, the name of a file.
    """

    code = "source-failed"
    title = "The source cannot be read"


class NoTopic(SourceUnavailable):
    """There is no topic of this name, as far as the brokers know."""
