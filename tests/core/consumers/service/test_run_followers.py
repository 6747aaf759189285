"""Serving followers: whose turn it is, and what happens to one whose work dies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from app.core.consumers.followers import Consumer, ConsumerKind
from app.core.consumers.service import Follow

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def consumer(kind: ConsumerKind) -> Consumer:
    return Consumer(
        dataset_id="d", name=f"{kind.value}:1", kind=kind, position=3, revision=1, max_lag_rows=None,
        max_lag_seconds=None, member="worker", lease_epoch=1, lease_until=NOW, created_at=NOW, moved_at=NOW,
    )  # fmt: skip


@dataclass
class Waiting:
    """Followers that are due, each once. `settled`: what was reported of them, in order."""

    due_ones: list[Consumer]
    settled: list[tuple[str, str, float | None]] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)

    def due(self, limit: int) -> list[tuple[str, str]]:
        return [("t", each.dataset_id) for each in self.due_ones[:limit]]

    def claim(self, tenant_id: str, dataset_id: str, owner: str, lease_seconds: float) -> Consumer | None:
        self.owners.append(owner)
        return self.due_ones.pop(0) if self.due_ones else None

    def settle(self, tenant_id: str, consumer: Consumer, wake_after_seconds: float | None) -> None:
        self.settled.append((tenant_id, consumer.name, wake_after_seconds))


@dataclass
class Handler:
    """Answers with a time, or dies."""

    answer: float | Exception | None
    seen: list[tuple[str, Consumer]] = field(default_factory=list)

    def follow(self, tenant_id: str, consumer: Consumer) -> float | None:
        self.seen.append((tenant_id, consumer))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [None, 0.0, 12.5, math.inf])
def test_follower_is_run_by_its_kind_and_settled_as_requested(answer: float | None) -> None:
    view, webhook = consumer(ConsumerKind.VIEW), consumer(ConsumerKind.WEBHOOK)
    waiting = Waiting([view, webhook])
    views, webhooks = Handler(answer), Handler(7.0)
    follow = Follow(
        followers=waiting,
        handlers={ConsumerKind.VIEW: views, ConsumerKind.WEBHOOK: webhooks},
        owner="worker",
    )
    assert follow.run("t", "d")
    assert (views.seen, webhooks.seen) == ([("t", view)], [])
    assert follow.run("t", "d")
    assert webhooks.seen == [("t", webhook)]
    assert waiting.settled == [("t", view.name, answer), ("t", webhook.name, 7.0)]
    assert not follow.run("t", "d"), "nothing is due any more"
    assert len(waiting.settled) == 2
    assert set(waiting.owners) == {"worker"}


def test_failed_follower_is_retried_later_and_others_continue() -> None:
    broken, fine = consumer(ConsumerKind.EXPORT), consumer(ConsumerKind.VIEW)
    waiting = Waiting([broken, fine])
    handlers = {ConsumerKind.EXPORT: Handler(OSError("no route")), ConsumerKind.VIEW: Handler(None)}
    follow = Follow(followers=waiting, handlers=handlers, owner="worker")
    assert follow.run("t", "d")
    assert follow.run("t", "d")
    [(_, name, again), (_, other, _)] = waiting.settled
    assert (name, other) == (broken.name, fine.name)
    assert again is not None
    assert 1 <= again <= 600


def test_follower_of_an_unknown_kind_is_postponed() -> None:
    """Another worker, of a later release, may."""
    waiting = Waiting([consumer(ConsumerKind.WEBHOOK)])
    assert Follow(followers=waiting, handlers={}, owner="worker").run("t", "d")
    [(_, _, again)] = waiting.settled
    assert again is not None
    assert again >= 1
