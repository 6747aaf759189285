"""Server-sent events as a response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

from litestar.response import Stream

EVENT_STREAM: Final = "text/event-stream"
STREAM: Final = "stream"
"""Handler option: the response is an event stream, which counts against the quota `streams`."""
# A comment: clients ignore it, and proxies see that the connection is in use.
HEARTBEAT: Final = b": still here\n\n"


STREAM_HEADERS: Final[Mapping[str, str]] = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Nothing on the way may keep events back."""


def event_stream(events: AsyncIterator[bytes]) -> Stream:
    """A response that sends events as they arrive; the next one is read once the last is sent."""
    return Stream(events, media_type=EVENT_STREAM, headers=dict(STREAM_HEADERS))
