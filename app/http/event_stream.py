"""Server-sent events as a response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

from litestar.response import Stream

EVENT_STREAM: Final = "text/event-stream"
# A comment: no client takes it for an event, and whoever sits between sees that the connection lives.
STILL_HERE: Final = b": still here\n\n"


def event_stream(events: AsyncIterator[bytes], told: Mapping[str, str] | None = None) -> Stream:
    """The events, sent as they come; the next are asked for once these are on their way. `told` are more headers."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(told or {})}
    return Stream(events, media_type=EVENT_STREAM, headers=headers)
