"""Server-sent events as a response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

from litestar.response import Stream

EVENT_STREAM: Final = "text/event-stream"
# A comment: no client takes it for an event, and whoever sits between sees that the connection lives.
HEARTBEAT: Final = b": still here\n\n"


def event_stream(events: AsyncIterator[bytes], extra_headers: Mapping[str, str] | None = None) -> Stream:
    """The events, sent as they come; the next are asked for once these are on their way. `extra_headers` are more
    headers.
    """
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(extra_headers or {})}
    return Stream(events, media_type=EVENT_STREAM, headers=headers)
