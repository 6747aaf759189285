"""What a Celery worker writes to the log of its process when it starts, works and stops."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Final

import pytest

from app.core.messaging.work_queue import WorkQueue
from app.infra.runtime.valkey import EmbeddedValkey

_PROCESS: Final = """
import os, signal, sys
from app.core.messaging.work_queue import celery_app
from app.infra.logs import LogFormat, configure_logs
from workers.jobs.celery_worker import register_tasks, serve

def wake(tenant_id, dataset_id):
    # Celery redirects what is printed to the log.
    os.write(1, b"woken\\n")
    raise ValueError("a task that fails")

signal.alarm(60)
configure_logs("worker", LogFormat.JSON)
celery = celery_app(sys.argv[1])
register_tasks(celery, {"notify": wake})
serve(celery, name="headwater@tests")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_every_line_until_the_stop_is_of_the_log(redis: EmbeddedValkey, number: signal.Signals) -> None:
    # The first database has notifications that no worker of other tests has received.
    url = f"{redis.url.removesuffix('/0')}/1"
    queue = WorkQueue(url)
    queue.send("notify", [("t", "d")])
    queue.close()
    with subprocess.Popen(
        [sys.executable, "-c", _PROCESS, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "woken\n"
        process.send_signal(number)
        rest, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert rest == ""
    events = [json.loads(line) for line in log.splitlines()]
    assert events[-1]["message"] == "receives no notifications any more, and stops"
    [failed] = [event for event in events if "exception" in event]
    assert failed["exception"].endswith("ValueError: a task that fails")
