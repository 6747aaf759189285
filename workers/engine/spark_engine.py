"""Runs tasks on Spark: many small Python tasks of one warm session, results collected as plain values."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, cast

import msgspec
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from app.core.jobs.engine import tenant_of_tag
from app.core.jobs.errors import EngineStopped
from app.features.writes.engine import DecodedInput
from app.kernel.commit.write_options import DEFAULT_OPTIONS, WriteOptions
from app.kernel.derivation.request import DeriveRequest
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.engine_task import EngineTask, Result, Work
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import RawInput, StagedFile
from workers.engine.decode.decode_input import Tasks, decode_input
from workers.engine.derive.view_computation import derive
from workers.engine.executor_hosts import ExecutorHosts, placed
from workers.engine.hive_metastore import HiveMetastore
from workers.engine.large_tasks import LargeTasks, LargeTurns
from workers.engine.placement import Partition, host_of, key_of, partitions_of
from workers.engine.pools import FairPools
from workers.engine.rounds import Rounds
from workers.engine.spark_job import missing_module, results_of
from workers.engine.task_setup import TaskSetup
from workers.engine.tasks import Task, TaskResult, pack, run_partition, unpack_result

# With fewer input bytes, the start of another Python task costs more than it saves.
_BYTES_PER_TASK = 32 * 1024 * 1024
_CANCELLED_TAGS_MAX = 10_000
# What a group may have for its tasks to run together with those of others: they take milliseconds.
_SMALL_BYTES_MAX = 8 * 1024 * 1024
_SMALL_ROWS_MAX = 100_000
_ROUND_TASKS_MAX = 32
# One at a time has more tasks for each job. Another one runs beside a slow one.
_ROUNDS = 2
_ROUND_SECONDS = 0.2
_EXIT_SECONDS_MAX = 5.0


class _PackedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A serialized task, and the key by which it prefers a host, if it does."""

    data: bytes
    key: str | None


def _on_cluster(context: SparkContext) -> bool:
    return not str(context.master).startswith("local")


def _large_group(tag: str) -> str:
    """The job group of the large tasks under a tag."""
    return f"{tag}/large"


def _in_order(partitions: Sequence[Partition], answers: Sequence[bytes]) -> list[bytes]:
    """The answers of these partitions in the order of the tasks."""
    by_number = dict(zip((number for each in partitions for number in each.tasks), answers, strict=True))
    return [by_number[number] for number in range(len(answers))]


def _group_of(task_set: Any) -> str | None:
    """The job group of a set of tasks."""
    properties = task_set.taskSet().properties()
    return None if properties is None else cast(str | None, properties.getProperty("spark.jobGroup.id"))


def _is_stopped(context: SparkContext) -> bool:
    """Whether a cluster has ended the application, in a JVM that lives."""
    if not _on_cluster(context):
        return False
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except (ConnectionError, Py4JError):
        # The JVM is about to end, which its process will show.
        return False


class SparkEngine:
    """The engine of one worker process. `start` is called once, before the first tasks, from any thread."""

    def __init__(
        self,
        start: Callable[[], SparkSession],
        setup: TaskSetup,
        *,
        turns: LargeTurns,
        on_death: Callable[[], None],
        stop: Callable[[SparkSession], None] = SparkSession.stop,
        prefers_hosts: bool = False,
    ) -> None:
        """`turns`: how many large tasks run, fewer than the session has slots, if it can be. `on_death` is called when
        the JVM has exited, since this process cannot start another one. `stop` ends the session. `prefers_hosts`:
        whether a cluster runs the tasks of a file group on the same host again.
        """
        self._start = start
        self._end = stop
        self._died = on_death
        self._setup = setup
        self._hosts = ExecutorHosts() if prefers_hosts else None
        self._lock = threading.Lock()
        self._pools = FairPools()
        self._rounds = Rounds[_PackedTask](
            self._run_round,
            at_a_time=_ROUNDS,
            patience_seconds=_ROUND_SECONDS,
            tasks_max=_ROUND_TASKS_MAX,
        )
        self._large = LargeTasks[list[bytes]](turns=turns, stop=self._stop_jobs)
        self._session: SparkSession | None = None
        self._cancelled: OrderedDict[str, None] = OrderedDict()
        # Since when sets of tasks were seen that have ended and still have tasks that run.
        self._stopping: dict[str, float] = {}

    def warm_up(self) -> None:
        """Starts the session and its first Python processes, so that no write waits for them."""
        context = self._spark().sparkContext
        slices = context.defaultParallelism
        results_of(context.parallelize([], slices), partial(run_partition, self._setup))

    def _spark(self) -> SparkSession:
        with self._lock:
            if self._session is None:
                self._session = self._start()
            return self._session

    def metastore(self, uri: str, storage_uri: str) -> HiveMetastore:
        """The metastore at a `thrift://host:port`, whose tables are below `storage_uri`."""
        return HiveMetastore(uri, storage_uri, self.jvm)

    def jvm(self) -> Any:
        """The classes of the session's JVM, for functions that Python lacks."""
        return self._spark().sparkContext._jvm

    def decode(
        self,
        raws: Sequence[RawInput],
        dataset: DatasetDefinition,
        operation: Operation,
        *,
        prefix: str,
        options: WriteOptions = DEFAULT_OPTIONS,
        quarantine: str | None = None,
        tag: str,
    ) -> DecodedInput:
        """Validates and splits the raw inputs of a write, in order, under the merged schema if they may merge one.

        `quarantine`: the path prefix of files of bad records, if these are kept. Raises SchemaMismatch, MalformedBody,
        CorruptFile, StorageFull, EngineStopped.
        """

        def run(tasks: Tasks) -> list[TaskResult]:
            size_bytes = sum(raw.size_bytes for raw in raws)
            return self._run(tasks, tag, size_bytes, Work.WRITES) if tasks else []

        return decode_input(
            run,
            raws,
            dataset,
            operation,
            options,
            prefix=prefix,
            quarantine=quarantine,
            decompressed_bytes_max=self._setup.decompressed_bytes_max,
            limits=self._setup.limits,
        )

    def run(self, tasks: Sequence[EngineTask[Result]], tag: str) -> list[Result]:
        """One result for each task, in order: together with small writes of others, if all of them may be.

        Raises EngineStopped, and what one of the tasks raises.
        """
        if not tasks:
            return []
        size_bytes = sum(task.size_bytes for task in tasks)
        small = (
            all(task.joins_rounds for task in tasks)
            and size_bytes <= _SMALL_BYTES_MAX
            and sum(task.rows for task in tasks) <= _SMALL_ROWS_MAX
        )
        # The classes of tasks and those of their results belong together: see `EngineTask`.
        plain_tasks = cast(Sequence[Task], tasks)
        return cast(list[Result], self._run(plain_tasks, tag, size_bytes, tasks[0].work, small=small))

    def derive(self, request: DeriveRequest, tag: str) -> tuple[StagedFile, ...]:
        """Runs the SQL of a view and stages its result as the view's rows, in order.

        Raises DerivationFailed, CorruptFile, StorageFull, EngineStopped.
        """
        with self._under(tag, Work.DERIVED):
            return derive(self._spark(), self._setup, request, bytes_per_task=_BYTES_PER_TASK)

    def _run(
        self, tasks: Sequence[Task], tag: str, size_bytes: int, work: Work, *, small: bool = False
    ) -> list[TaskResult]:
        """Runs tasks and returns their results. `small`: they may share a Spark job with those of other groups."""
        packed_tasks = [_PackedTask(data=pack(task), key=key_of(task)) for task in tasks]
        self._check(tag)
        results = (
            self._rounds.run(packed_tasks, tag)
            if small
            else self._run_large(packed_tasks, tag, size_bytes, work)
        )
        self._check(tag)
        return [unpack_result(answer) for answer in results]

    def _run_large(
        self, packed_tasks: Sequence[_PackedTask], tag: str, size_bytes: int, work: Work
    ) -> list[bytes]:
        """Runs the tasks as jobs of one partition each, a few at a time."""
        partitions = self._partitions(packed_tasks, size_bytes)

        def run(partition: Partition) -> list[bytes]:
            with self._under(tag, work, group=_large_group(tag)):
                return self._job(packed_tasks, [partition])

        calls = [partial(run, each) for each in partitions]
        answers = self._large.run(calls, tenant_id=tenant_of_tag(tag), kind=work.value, tag=tag)
        return _in_order(partitions, [answer for each in answers for answer in each])

    def _stop_jobs(self, tag: str) -> None:
        """Ends the jobs that run under the tag."""
        self._spark().sparkContext.cancelJobGroup(_large_group(tag))

    def _run_round(self, packed_tasks: Sequence[_PackedTask], tag: str) -> list[bytes]:
        # A pool of its own: its tasks wait for no large work of the tenant that leads it.
        with self._under(tag, Work.WRITES, pool_of=tag):
            return self._collect(packed_tasks, 0)

    def _check(self, tag: str) -> None:
        if tag in self._cancelled:
            raise EngineStopped(tag)

    @contextmanager
    def _under(
        self, tag: str, work: Work, *, pool_of: str | None = None, group: str | None = None
    ) -> Iterator[None]:
        """Runs the Spark jobs of this thread under the tag, in the pool of its tenant or in one named otherwise, and in
        the job group of the tag or in another one.

        Raises EngineStopped if the tag is cancelled.
        """
        self._check(tag)
        context = self._spark().sparkContext
        try:
            with self._pools.pool(work, pool_of or tenant_of_tag(tag)) as pool:
                context.setJobGroup(group or tag, tag, interruptOnCancel=True)
                context.setLocalProperty("spark.scheduler.pool", pool)
                yield
        except Exception as error:
            if tag in self._cancelled:
                raise EngineStopped(tag) from error
            if not self.alive(error):
                self._died()
            if (missing := missing_module(error)) is not None:
                raise missing from error
            raise
        else:
            # The cancellation came after the last job of the block.
            self._check(tag)

    def _collect(self, packed_tasks: Sequence[_PackedTask], size_bytes: int) -> list[bytes]:
        """Runs the tasks as one job."""
        partitions = self._partitions(packed_tasks, size_bytes)
        return _in_order(partitions, self._job(packed_tasks, partitions))

    def _partitions(self, packed_tasks: Sequence[_PackedTask], size_bytes: int) -> list[Partition]:
        context = self._spark().sparkContext
        slices = min(len(packed_tasks), max(context.defaultParallelism, size_bytes // _BYTES_PER_TASK))
        return partitions_of(self._preferred_hosts(context, packed_tasks), slices)

    def _job(self, packed_tasks: Sequence[_PackedTask], partitions: Sequence[Partition]) -> list[bytes]:
        """The answers of a job with these partitions, one after another."""
        context = self._spark().sparkContext
        data = [task.data for task in packed_tasks]
        if any(each.host for each in partitions):
            tasks = placed(context, data, partitions)
        else:
            in_turn = [data[number] for each in partitions for number in each.tasks]
            tasks = context.parallelize(in_turn, len(partitions))
        return results_of(tasks, partial(run_partition, self._setup))

    def _preferred_hosts(
        self, context: SparkContext, packed_tasks: Sequence[_PackedTask]
    ) -> list[str | None]:
        """The host of each task, None for any."""
        if self._hosts is None or not _on_cluster(context) or all(task.key is None for task in packed_tasks):
            return [None] * len(packed_tasks)
        alive = self._hosts.alive(context)
        return [host_of(task.key, alive) for task in packed_tasks]

    def alive(self, error: Exception | None = None) -> bool:
        """Whether the session's JVM lives, and the session in it. `error`: what a call to it has raised."""
        context = self._spark().sparkContext
        gateway = context._gateway
        process = getattr(gateway, "proc", None)
        if process is None:
            return True
        if isinstance(error, ConnectionError | Py4JError) and not isinstance(error, Py4JJavaError):
            # The connection breaks shortly before the process has ended.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_EXIT_SECONDS_MAX)
        return process.poll() is None and not _is_stopped(context)

    def executors(self) -> int | None:
        """The number of executors on the cluster; None if Spark runs in its JVM alone, or has not started yet.

        Calls `on_death` if the session has ended: the JVM has exited, or the master of a cluster has ended it.
        """
        session = self._session
        if session is None:
            return None
        alive = self.alive()
        if not alive:
            self._died()
        if not _on_cluster(session.sparkContext):
            return None
        if not alive:
            return 0
        # The driver is one of those that hold blocks.
        return int(session.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def progress(self, tag: str) -> tuple[int, int]:
        """The numbers of finished tasks and of all tasks in the Spark jobs that run under the tag."""
        tracker = self._spark().sparkContext.statusTracker()
        ended_tasks, total = self._large.progress(tag)
        for job in tracker.getJobIdsForGroup(self._rounds.job_of(tag)):
            info = tracker.getJobInfo(job)
            for stage in (tracker.getStageInfo(number) for number in (info.stageIds if info else ())):
                if stage is not None:
                    ended_tasks, total = ended_tasks + stage.numCompletedTasks, total + stage.numTasks
        return ended_tasks, total

    def cancel(self, tag: str) -> None:
        """Stops the tasks under the tag, and starts no others: the thread that runs them gets EngineStopped.

        The last tags are remembered, many more than run at a time. A tag is never used again.
        """
        with self._lock:
            self._cancelled[tag] = None
            while len(self._cancelled) > _CANCELLED_TAGS_MAX:
                self._cancelled.popitem(last=False)
            session = self._session
        self._large.cancel(tag, EngineStopped(tag))
        if session is not None:
            for group in (self._rounds.job_of(tag), _large_group(tag)):
                # A block runs several jobs, and the next one may be about to start.
                session.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(group)

    def stopping_seconds(self) -> float:
        """For how long tasks have run that Spark has stopped; 0 if there are none. One thread may call it.

        Spark ends no task that does not check whether it was stopped, such as one that loops over the pairs of rows of
        a join. The task keeps its slot.
        """
        now = time.monotonic()
        try:
            names = [each.name() for each in self._task_sets() if each.isZombie() and each.runningTasks()]
        except (ConnectionError, Py4JError) as error:
            if not self.alive(error):
                self._died()
            return 0.0
        self._stopping = {name: self._stopping.get(name, now) for name in names}
        return now - min(self._stopping.values(), default=now)

    def waits(self, tag: str) -> bool:
        """Whether there are tasks of SQL under the tag, and none has a slot: others have them all."""
        own = [each.runningTasks() for each in self._task_sets() if _group_of(each) == tag]
        return bool(own) and not any(own)

    def _task_sets(self) -> list[Any]:
        """Spark's sets of tasks of which some wait or run, in all pools."""
        root = self._spark().sparkContext._jsc.sc().taskScheduler().rootPool()
        return [
            each for pool in root.schedulableQueue().toArray() for each in pool.schedulableQueue().toArray()
        ]

    def stop(self) -> None:
        """Ends the session and its processes."""
        with self._lock:
            if self._session is not None:
                self._end(self._session)
                self._session = None
