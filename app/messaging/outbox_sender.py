"""What a relay sends: work to the queue, changes to whoever waits for them."""

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
        """Raises what the transport raises if Redis is out of reach."""
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
                # Posted by a later release; holding it back would hold back everything behind it too.
                _log.warning("dropped a message of the unknown topic %r", topic)
