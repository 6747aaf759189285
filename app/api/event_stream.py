"""Server-sent events as a response."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from litestar.response import Stream

EVENT_STREAM: Final = "text/event-stream"
# A comment: no client takes it for an event, and whoever sits between sees that the connection lives.
STILL_HERE: Final = b": still here\n\n"


def event_stream(events: AsyncIterator[bytes]) -> Stream:
    """The events, sent as they come; the next are asked for once these are on their way."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Stream(events, media_type=EVENT_STREAM, headers=headers)
