"""Streams of changes over a feed in memory, what their text says, and how often it was read for them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from types import SimpleNamespace
from typing import Any

from litestar.connection import ASGIConnection

from app.access.tenants.values import Principal
from app.core.changes.handlers.events import _as_events, _events
from app.core.changes.handlers.head_polls import head_polls
from app.core.changes.handlers.shared_pages import SharedPages
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.changes.values import ChangePage
from app.http.credential_cache import Credentials
from app.http.limits.threads import Threads
from app.http.waiting.request_credential import RequestCredential
from app.http.waiting.shared_polls import SharedPolls
from app.http.waiting.subscriptions import Subscriptions
from app.kernel.format.rows.changelog import Op
from tests.support.histories import DEFINITION, History
from tests.support.stored_feed import DATASET, Stored

_ROW = {"k": "a", "n": 0, "at": None, "op": None, "tags": None}
CORRECTION: Sequence[tuple[int, dict[str, Any]]] = [(Op.CORRECT_FROM, _ROW), (Op.CORRECT_TO, _ROW)]


def feed_of(commits: int) -> Stored:
    """A feed of this number of commits, each of them a correction; append to `history.commits` for another."""
    return Stored(history=History(definition=DEFINITION, commits=[CORRECTION] * commits))


def serving(stored: Stored, read: Callable[..., ChangePage] | None = None) -> Any:
    """The services that a stream needs. `read` is called for pages instead of the feed."""
    changes = ReadChanges(catalog=stored, index=stored, reader=stored)  # type: ignore[arg-type]
    threads, subscriptions = Threads(), Subscriptions()
    return SimpleNamespace(
        threads=threads,
        subscriptions=subscriptions,
        pages=SharedPages(read or changes.page, threads),
        head_polls=head_polls(subscriptions, threads, stored.moved_heads),
        credential=request_credential(),
    )


async def no_name(_: str, __: str) -> None:
    """The name of a dataset, of credentials that need none: they have no grants."""
    return


def request_credential() -> RequestCredential:
    """A credential that stays valid."""
    principal = Principal(tenant_id=DATASET.tenant_id, actor="reader", scopes=frozenset())

    async def authenticate(_: str) -> Principal:
        return principal

    credentials = Credentials(authenticate, no_name)
    credentials.confirm(float("inf"))
    return RequestCredential(credentials, "key", principal, ASGIConnection({"type": "http"}), ())  # type: ignore[typeddict-item]


async def streamed(services: Any, query: FeedQuery, since: int = 0) -> AsyncIterator[bytes]:
    """The pieces of a stream."""
    first = await services.pages.page(DATASET, since, query, _as_events)
    async for piece in _events(services, DATASET, first, query, emit_start=False):
        yield piece


def blocks(text: str) -> list[tuple[int | str, Any]]:
    """The blocks of a stream as pairs of id and data; comments are left out, as clients do."""
    found = []
    for block in text.split("\n\n"):
        lines = [line.split(": ", 1) for line in block.splitlines() if not line.startswith(":")]
        fields = dict(lines)
        assert len(fields) == len(lines)
        if fields:
            assert fields.get("event", "change") == "change"
            position = int(fields["id"]) if fields["id"].isdecimal() else fields["id"]
            found.append((position, json.loads(fields["data"]) if "data" in fields else None))
    return found


class Counting:
    """A function that counts its calls, and holds what they found back while `gate` is closed.

    Those of `faults` come first.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls = 0
        self.gate = threading.Event()
        self.gate.set()
        self.faults: list[Exception] = []

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.faults:
            raise self.faults.pop()
        found = self.function(*arguments)
        assert self.gate.wait(30)
        return found


async def when(condition: Callable[[], Any]) -> None:
    """Returns once it is so."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  (what it waits for is no event of this loop)
            await asyncio.sleep(0.001)


def waiting(polls: SharedPolls[Any, Any]) -> int:
    """How many wait for something, of whichever dataset."""
    return sum(len(poll._waiting) for poll in list(polls._open.values()))
