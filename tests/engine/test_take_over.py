"""Workers that take over the JVM of a killed one, as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.infra.runtime.child import ChildSpec
from app.infra.runtime.java import java_home
from tests.support.process import Process
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
WORKER = """
import json, sys, time
from functools import partial
from pathlib import Path
from app.infra.settings import Settings
from workers.engine import take_over
from workers.engine.spark_job import results_of
from workers.jvm import worker_session_settings

folder, work, other_settings, changes = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
for name, value in changes.items():
    setattr(take_over, name, value)
settings = Settings.from_environment()


def settings_of(folder):
    return worker_session_settings(settings, folder) | other_settings


def beat(path, number, items):
    for _ in range(3000):
        with open(path, "a") as file:
            file.write(".")
        time.sleep(0.02)
    return iter(items)


def same(number, items):
    return iter(items)


session = take_over.take_over(folder, settings_of)
context = session.sparkContext
run = same if work == "-" else partial(beat, work)
print(json.dumps({
    "jvm": context._jvm.java.lang.ProcessHandle.current().pid(),
    "results": len(results_of(context.parallelize([b"a", b"b"], 2), run)),
    "workers": int(context._jvm.java.lang.System.getProperty("headwater.workers")),
}), flush=True)
take_over.release(session)
"""


class Jvms:
    """A JVM as the supervisor starts it, and workers one after another."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.folder = directory / "jvm"
        self._directory = directory
        self._stack = stack
        self.environment = {
            "HEADWATER_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
            "HEADWATER_REDIS_URL": "redis://127.0.0.1:1",
            "HEADWATER_DATA_DIR": str(directory),
            "HEADWATER_SPARK_MASTER": "local[2]",
            "JAVA_HOME": str(java_home(directory)),
            "PYTHONPATH": str(ROOT),
        }
        self.java = Process(
            ChildSpec(
                name="jvm",
                command=(sys.executable, "-P", "-m", "workers.jvm", str(self.folder)),
                environment=self.environment,
                input_stays_open=True,
            ),
            directory / "logs",
        )
        stack.callback(self.java.stop)

    def worker(
        self, *, beats: Path | None = None, settings: dict[str, str] | None = None, **changes: float
    ) -> subprocess.Popen[str]:
        """A worker whose tasks write to the file `beats` for a minute. `changes`: of the module's constants."""
        arguments = [str(self.folder), str(beats or "-"), json.dumps(settings or {}), json.dumps(changes)]
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, *arguments],
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # Closes its pipes, and waits for it.
        self._stack.enter_context(process)
        self._stack.callback(process.kill)
        return process

    def result(self, **options: Any) -> dict[str, Any]:
        """What a worker reports that runs to its end."""
        process = self.worker(**options)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        found: dict[str, Any] = json.loads(output)
        return found

    def refusal(self, **options: Any) -> str:
        """What a worker prints that takes over no JVM. No other JVM is started for it."""
        process = self.worker(_SECONDS_MAX=0.5, **options)
        errors = process.communicate(timeout=120)[1]
        assert process.returncode != 0
        assert "started no JVM that serves within 0.5 s" in errors
        return errors


@pytest.fixture
def jvms(tmp_path: Path) -> Iterator[Jvms]:
    with ExitStack() as stack:
        yield Jvms(tmp_path, stack)


def test_jvm_of_a_killed_worker_goes_on_with_the_next_one_without_its_tasks(
    jvms: Jvms, tmp_path: Path
) -> None:
    jvms.java.start()
    beats = tmp_path / "beats"
    first = jvms.worker(beats=beats)
    until(lambda: beats.exists() and beats.stat().st_size > 4, "the tasks to run", seconds_max=90)
    first.kill()
    first.wait()
    assert jvms.java.alive
    assert jvms.result() == {"jvm": jvms.java.pid, "results": 2, "workers": 2}

    def is_still() -> bool:
        size = beats.stat().st_size
        time.sleep(0.3)
        return beats.stat().st_size == size

    # Spark leaves Python two seconds to end a task that was cancelled.
    until(is_still, "the tasks of the killed worker to end")
    # Other settings: another JVM.
    assert "settings differ" in jvms.refusal(settings={"spark.broadcast.blockSize": "1m"})
    until(lambda: not jvms.java.alive, "the JVM to end")


def test_jvm_that_does_not_answer_is_replaced(jvms: Jvms) -> None:
    jvms.java.start()
    until(lambda: list(jvms.folder.glob("*/gateway")), "the JVM to start", seconds_max=60)
    psutil.Process(jvms.java.pid).suspend()
    assert "not answered within 0.5 s" in jvms.refusal(_ANSWER_SECONDS_MAX=0.5)
    until(lambda: not jvms.java.alive, "the JVM to end")


def test_jvm_is_replaced_after_some_workers_and_its_folder_is_removed(jvms: Jvms) -> None:
    jvms.java.start()
    until(lambda: list(jvms.folder.glob("*/gateway")), "the JVM to start", seconds_max=60)
    assert "it has had 0 workers" in jvms.refusal(_WORKERS_MAX=0)
    until(lambda: not jvms.java.alive, "the JVM to end")
    [former] = jvms.folder.glob("*.lock")
    jvms.java.stop()
    jvms.java.start()

    def is_replaced() -> bool:
        locks = list(jvms.folder.glob("*.lock"))
        return len(locks) == 1 and locks != [former] and not former.with_suffix("").exists()

    until(is_replaced, "the folder of the former JVM to be removed")
