"""The session in a JVM that outlives its worker: a worker that was killed leaves it warm to the next one.

The supervisor starts the JVM. The first worker makes the context in it; the next one ends the jobs of its predecessor
and goes on with the same context, before it ends its predecessor's claims.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from workers.engine.jvm import SupervisedJvm, ready_jvms
from workers.engine.session import gateway_of, session_with, use_this_python

_log = logging.getLogger(__name__)

SettingsOf: TypeAlias = Callable[[Path], Mapping[str, str]]
"""The settings of a session, by the folder of its JVM."""

_JvmContext: TypeAlias = tuple[ClientServer, Any]

_SECONDS_MAX: Final = 120.0
# A JVM that does not answer for this time is replaced: a new one takes about as long to start.
_ANSWER_SECONDS_MAX: Final = 15.0
# Tasks of a worker that was killed must have ended. Spark kills the Python process of one after two seconds.
_TASKS_SECONDS_MAX: Final = 5.0
# Each process that was killed may have left objects in the JVM.
_WORKERS_MAX: Final = 20
_WORKERS_PROPERTY: Final = "headwater.workers"
_SETTINGS_PROPERTY: Final = "headwater.settings"
_WAIT_SECONDS: Final = 0.02


class UnfitError(Exception):
    """A JVM is not taken over. The message says why."""


def take_over(parent: Path, settings_of: SettingsOf) -> SparkSession:
    """A session in the JVM that the supervisor has started below `parent`, with the context of a former worker if it
    has one with the same settings. A JVM that does not suit is killed, and the supervisor starts another one.

    Raises JvmError.
    """
    use_this_python()
    for jvm in ready_jvms(parent, _SECONDS_MAX):
        settings = settings_of(jvm.folder)
        try:
            gateway, context = _in_time(partial(_prepare, jvm, settings))
            SparkContext._ensure_initialized(gateway=gateway)
            SparkContext(conf=SparkConf().setAll(list(settings.items())), jsc=context)
            return session_with(settings)
        except (UnfitError, OSError, Py4JError) as error:
            _log.warning("the JVM %d is not taken over, another one is started: %s", jvm.pid, error)
            jvm.kill()
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    raise AssertionError("the iterator has no end")


def release(session: SparkSession) -> None:
    """Ends the jobs of the session, if its JVM lives. Its context stays for the next worker."""
    context: Any = session.sparkContext
    if context._gateway.proc.poll() is None:
        with suppress(OSError, Py4JError):
            context.cancelAllJobs()


def _in_time(call: Callable[[], _JvmContext]) -> _JvmContext:
    """The result of a call, in another thread: a connection to a JVM that stands still waits for ever."""
    results: SimpleQueue[_JvmContext | Exception] = SimpleQueue()

    def run() -> None:
        try:
            results.put(call())
        except Exception as error:
            results.put(error)

    threading.Thread(target=run, name="take over", daemon=True).start()
    try:
        result = results.get(timeout=_ANSWER_SECONDS_MAX)
    except Empty:
        raise UnfitError(f"it has not answered within {_ANSWER_SECONDS_MAX:g} s") from None
    if isinstance(result, Exception):
        raise result
    return result


def _prepare(jvm: SupervisedJvm, settings: Mapping[str, str]) -> _JvmContext:
    """A connection to the JVM, and its context once none of its tasks runs; no context if it has had no worker.

    Raises UnfitError.
    """
    gateway = gateway_of(jvm.folder)
    gateway.proc = jvm
    view: Any = gateway.jvm
    system = view.java.lang.System
    _count(system)
    former = system.getProperty(_SETTINGS_PROPERTY)
    if former is None:
        # Noted before the context is made: a worker that is killed meanwhile leaves a part of one.
        system.setProperty(_SETTINGS_PROPERTY, _digest(settings))
        return gateway, None
    if former != _digest(settings):
        raise UnfitError("its settings differ")
    # Scala's name of the object beside the class: the method is not one of the class.
    active = getattr(getattr(view.org.apache.spark, "SparkContext$"), "MODULE$").getActive()
    if active.isEmpty() or active.get().isStopped():
        raise UnfitError("it has no context that works")
    _end_jobs(active.get())
    return gateway, view.JavaSparkContext(active.get())


def _count(system: Any) -> None:
    """Counts the workers that the JVM has had."""
    workers = int(system.getProperty(_WORKERS_PROPERTY, "0")) + 1
    if workers > _WORKERS_MAX:
        raise UnfitError(f"it has had {_WORKERS_MAX} workers")
    system.setProperty(_WORKERS_PROPERTY, str(workers))


def _digest(settings: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _end_jobs(context: Any) -> None:
    """Ends all jobs of the former worker, and waits for their tasks: no job uses what they write."""
    context.cancelAllJobs()
    deadline = time.monotonic() + _TASKS_SECONDS_MAX
    while any(each.numRunningTasks() for each in context.statusTracker().getExecutorInfos()):
        if time.monotonic() > deadline:
            raise UnfitError(f"its tasks run on {_TASKS_SECONDS_MAX:g} s after they were ended")
        time.sleep(_WAIT_SECONDS)
