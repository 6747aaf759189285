"""Composes the use case that runs a request once for each key."""

from __future__ import annotations

from app.idempotency.repository import ReplyStore
from app.idempotency.service import RunOnce
from app.platform import Platform


def run_once(platform: Platform) -> RunOnce:
    """Runs a request that creates something once for each idempotency key."""
    return RunOnce(replies=reply_store(platform), wake=platform.wake)


def reply_store(platform: Platform) -> ReplyStore:
    """The replies of such requests."""
    return ReplyStore(platform.database)
