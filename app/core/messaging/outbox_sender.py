"""Sends the messages of the outbox: tasks to the queue, announcements to subscribers."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.jobs.values import OutboxMessage
from app.core.messaging.announcements import Announcements
from app.core.messaging.work_queue import FOLLOW_TASK, TASKS_TASK, WRITE_TASK, WorkQueue

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class OutboxSender:
    """Sends outbox messages by topic."""

    queue: WorkQueue
    announcements: Announcements

    def __call__(self, messages: Sequence[OutboxMessage]) -> None:
        """Sends messages, those of one topic together. Raises the transport's exception if Redis is out of reach."""
        topics: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for message in messages:
            topics[message.topic].append((message.tenant_id, message.dataset_id))
        for topic, datasets in topics.items():
            match topic:
                case "work":
                    self.queue.send(WRITE_TASK, datasets)
                case "tasks":
                    self.queue.send(TASKS_TASK, datasets)
                case "follow":
                    self.queue.send(FOLLOW_TASK, datasets)
                case "changes":
                    self.announcements.publish(datasets)
                case _:
                    # A later release has posted it. Keeping it would block all messages behind it.
                    _log.warning("dropped %d message(s) of the unknown topic %r", len(datasets), topic)
