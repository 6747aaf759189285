"""Sends the messages of the outbox: tasks to the queue, announcements to subscribers."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from app.jobs.values import OutboxMessage
from app.messaging.announcements import Announcements
from app.messaging.work_queue import FOLLOW_TASK, TASKS_TASK, WRITE_TASK, WorkQueue

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class OutboxSender:
    """Sends outbox messages by topic."""

    queue: WorkQueue
    announcements: Announcements

    def __call__(self, message: OutboxMessage) -> None:
        """Sends one message. Raises the transport's exception if Redis is out of reach."""
        match message.topic:
            case "work":
                self.queue.send(WRITE_TASK, message.tenant_id, message.dataset_id)
            case "tasks":
                self.queue.send(TASKS_TASK, message.tenant_id, message.dataset_id)
            case "follow":
                self.queue.send(FOLLOW_TASK, message.tenant_id, message.dataset_id)
            case "changes":
                self.announcements.publish(message.tenant_id, message.dataset_id)
            case topic:
                # A later release has posted it. Keeping it would block all messages behind it.
                _log.warning("dropped a message of the unknown topic %r", topic)
