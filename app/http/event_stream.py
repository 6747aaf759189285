"""Server-sent events as a response."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Final

from litestar.response import Stream

from app.http.problems import document, encoded_problem
from app.http.waiting.request_credential import CredentialEnded, RequestCredential

EVENT_STREAM: Final = "text/event-stream"
STREAM: Final = "stream"
"""Handler option: the response is an event stream, which counts against the quota `streams`."""
# A comment: clients ignore it, and proxies see that the connection is in use.
HEARTBEAT: Final = b": still here\n\n"


STREAM_HEADERS: Final[Mapping[str, str]] = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Nothing on the way may keep events back."""


def event_stream(events: AsyncGenerator[bytes, None], credential: RequestCredential) -> Stream:
    """A response that sends events as they arrive; the next one is read once the last is sent."""
    return Stream(while_valid(events, credential), media_type=EVENT_STREAM, headers=dict(STREAM_HEADERS))


async def while_valid(
    events: AsyncGenerator[bytes, None], credential: RequestCredential
) -> AsyncIterator[bytes]:
    """The events for as long as the credential permits them. The last one is then an event `error` with the problem."""
    try:
        async with aclosing(events):
            async for event in events:
                if event == HEARTBEAT:
                    await credential.check_if_possible()
                else:
                    await credential.check_before_data()
                yield event
    except CredentialEnded as end:
        error = end.error
        problem = document(error.code, error.title, error.detail, error.facts)
        yield b"event: error\ndata: " + encoded_problem(problem, end.path) + b"\n\n"
