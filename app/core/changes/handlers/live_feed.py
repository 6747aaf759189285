"""What a request needs to follow a feed."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.changes.handlers.head_polls import HeadPolls
from app.core.changes.handlers.shared_pages import SharedPages
from app.http.waiting.request_credential import RequestCredential
from app.http.waiting.subscriptions import Subscriptions


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveFeed:
    """Pages of the feed, and a way to wait for the next change. `subscriptions` are closed when the process stops.

    `credential`: that of the request.
    """

    pages: SharedPages
    head_polls: HeadPolls
    subscriptions: Subscriptions
    credential: RequestCredential
