"""The settings of a Spark session, as text by name. Imports neither PySpark nor what tasks need."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from workers.engine.large_tasks import LargeTurns

ONE_THREAD = {"OMP_NUM_THREADS": "1", "ARROW_IO_THREADS": "1"}
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""The setting with the options of the JVM."""
HEAP = "spark.driver.memory"
"""The setting with the size of the heap."""
_MEBIBYTE = 1024 * 1024
_CORES_TO_RESERVE = 3
_TURNS_TO_RESERVE = 4
# A JVM that was out of memory once is not to be relied on. Performance counters would be files in the system's folder
# for temporary files, which a killed JVM leaves behind.
_SMALL_COMMIT_JVM = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m -XX:+ExitOnOutOfMemoryError -XX:-UsePerfData"
)
_LOGGING = Path(__file__).with_name("log4j2.properties")
# Of `.<uuid>.sock`, and what every system admits for the path of a socket.
_SOCKET_NAME_CHARACTERS = 42
_SOCKET_PATH_BYTES_MAX = 103


class ClusterShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one process takes of a cluster, and where its executors reach it. Empty texts and port 0: Spark's choice.

    `locality_wait_seconds`: how long a task waits for the host that it prefers.
    """

    cores_max: int
    executor_cores: int
    executor_memory_bytes: int
    dynamic_allocation: bool = False
    locality_wait_seconds: float = 0.0
    driver_host: str = ""
    bind_address: str = ""
    driver_port: int = 0
    block_manager_port: int = 0


def large_turns(master: str, share: ClusterShare | None = None) -> LargeTurns:
    """How many large tasks run at a time.

    `local[N]`: N of one tenant, and one more of others; the session has another slot for small tasks. On a cluster, one
    of at least three cores is left to small tasks, and one of at least five to large ones of other tenants.
    """
    if master.startswith("local"):
        cores = _cores(master)
        return LargeTurns(at_a_time=cores + 1, per_tenant=cores)
    cores = 1 if share is None else share.cores_max
    at_a_time = cores - 1 if cores >= _CORES_TO_RESERVE else cores
    per_tenant = at_a_time - 1 if at_a_time >= _TURNS_TO_RESERVE else at_a_time
    return LargeTurns(at_a_time=at_a_time, per_tenant=per_tenant)


def _cores(master: str) -> int:
    """The N of `local[N]`."""
    number = master.removeprefix("local").strip("[]") or "1"
    return len(os.sched_getaffinity(0)) if number == "*" else int(number)


def session_settings(
    master: str,
    scratch: Path,
    *,
    driver_memory: str,
    share: ClusterShare | None = None,
    java_options: str = "",
    name: str = "headwater",
) -> dict[str, str]:
    """The settings of a session for many short jobs.

    `scratch` is a local folder for Spark's own files. `share`: that of a cluster. `java_options`: further ones. The
    JVM only schedules (rows go through Python tasks as Arrow), so it gets a small heap, the serial collector and the
    first compiler tier: it starts faster and leaves the cores to the tasks.
    """
    settings = {
        "spark.app.name": name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "500",
        "spark.sql.ui.retainedExecutions": "50",
        "spark.scheduler.mode": "FAIR",
        "spark.speculation": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "workers.engine.python_daemon",
        # Each job has a block of this size filled with zeros for its function, which has a few kilobytes.
        "spark.broadcast.blockSize": "256k",
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        HEAP: driver_memory,
        JAVA_OPTIONS: f"{_java_options(master, scratch)} {java_options}".rstrip(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        # Text in the SQL of a view is never substituted, even if it looks like the name of a setting.
        "spark.sql.variable.substitute": "false",
        # The planner does not know the sizes of inputs, so only the sizes of shuffled data choose a broadcast.
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB",
        "spark.log.level": "WARN",
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings["spark.default.parallelism"] = str(_cores(master))
        settings["spark.python.unix.domain.socket.dir"] = str(socket_folder(scratch))
        master = f"local[{large_turns(master).at_a_time + 1}]"
    elif share is not None:
        settings |= cluster_settings(share)
    settings["spark.master"] = master
    return settings


def socket_folder(scratch: Path) -> Path:
    """The folder for the sockets of Python processes: the system's folder for temporary files if a path would be too
    long.
    """
    length = len(os.fsencode(scratch)) + 1 + _SOCKET_NAME_CHARACTERS
    return scratch if length <= _SOCKET_PATH_BYTES_MAX else Path(tempfile.gettempdir())


def _java_options(master: str, scratch: Path) -> str:
    """The options of the JVM. Its temporary files are in the scratch folder, as it leaves them behind when killed."""
    options = f"{_SMALL_COMMIT_JVM} {_property('log4j2.configurationFile', _LOGGING.as_uri())}"
    if not master.startswith("local") and socket_folder(scratch) != scratch:
        # Executors have no such folder, so there is no setting for sockets: they are where temporary files are.
        return options
    return f"{options} {_property('java.io.tmpdir', str(scratch))}"


def _property(name: str, value: str) -> str:
    """The option of a property of the JVM, whose value may have spaces."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'-D{name}="{escaped}"'


def cluster_settings(share: ClusterShare) -> dict[str, str]:
    """The settings of an application that shares a cluster with others."""
    executors = max(1, share.cores_max // share.executor_cores)
    settings = {
        # Without this, the first application of a standalone cluster takes all cores, and others wait for it to end.
        "spark.cores.max": str(share.cores_max),
        "spark.executor.cores": str(share.executor_cores),
        "spark.executor.instances": str(executors),
        "spark.executor.memory": f"{share.executor_memory_bytes // _MEBIBYTE}m",
        **{f"spark.executorEnv.{variable}": value for variable, value in ONE_THREAD.items()},
    }
    if share.locality_wait_seconds:
        wait = f"{max(1, round(share.locality_wait_seconds * 1000))}ms"
        # Unless a task ends, Spark looks only at this interval whether a wait is over.
        settings |= {"spark.locality.wait": wait, "spark.scheduler.revive.interval": wait}
    if share.dynamic_allocation:
        settings |= {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "1",
            "spark.dynamicAllocation.initialExecutors": "1",
            "spark.dynamicAllocation.maxExecutors": str(executors),
        }
        del settings["spark.executor.instances"]
    if share.driver_host:
        settings["spark.driver.host"] = share.driver_host
    if share.bind_address:
        settings["spark.driver.bindAddress"] = share.bind_address
    if share.driver_port:
        settings["spark.driver.port"] = str(share.driver_port)
    if share.block_manager_port:
        settings["spark.blockManager.port"] = str(share.block_manager_port)
    return settings
