"""The work queue: Celery messages that datasets have work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from celery import Celery

WRITE_TASK: Final = "headwater.work.writes"
TASKS_TASK: Final = "headwater.work.tasks"
FOLLOW_TASK: Final = "headwater.work.follow"
_TIMEOUT_SECONDS: Final = 2.0


def celery_app(redis_url: str) -> Celery:
    """The queue's configuration, shared by senders and workers.

    A task is a hint that some datasets have work. The database determines the work and its owner, so tasks are
    acknowledged early, keep no result, and contain only ids.
    """
    celery = Celery("headwater", broker=redis_url, set_as_current=False)
    celery.conf.update(
        accept_content=["json"],
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            # A message that is lost with its worker is a hint: workers poll, too. Keeping each in Redis until it is
            # acknowledged took a fifth of the driver's time under small writes to many datasets.
            "ack_emulation": False,
            "socket_connect_timeout": _TIMEOUT_SECONDS,
            "socket_timeout": _TIMEOUT_SECONDS,
        },
        task_acks_late=False,
        task_default_queue="headwater",
        task_ignore_result=True,
        # The relay resends messages; Celery's own retries would keep its transaction open.
        task_publish_retry=False,
        task_serializer="json",
        worker_prefetch_multiplier=1,
        worker_send_task_events=False,
    )
    return celery


class WorkQueue:
    """Sends tasks. Safe to use from any number of threads."""

    def __init__(self, redis_url: str) -> None:
        self._celery = celery_app(redis_url)

    def send(self, task: str, datasets: Sequence[tuple[str, str]]) -> None:
        """Sends a task for tenants and datasets. Raises kombu's exception if Redis is out of reach."""
        # The text for logs takes Celery longer to make than the message.
        summary = f"({len(datasets)} datasets)"
        self._celery.send_task(task, args=[list(datasets)], argsrepr=summary, kwargsrepr="{}")

    def close(self) -> None:
        """Closes the connections."""
        self._celery.close()
