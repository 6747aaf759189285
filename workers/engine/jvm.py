"""The JVM of a Spark session: its command, and the one that the supervisor has started for its worker.

The command is that of `spark-submit pyspark-shell`, without the shell and the other JVM that make it. Imports no
PySpark: the process that becomes the JVM needs none.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from app.infra.runtime.child import ChildSpec, launch
from app.infra.runtime.private_file import write_private
from workers.engine.scratch import is_alive
from workers.engine.spark_settings import HEAP, JAVA_OPTIONS

CONNECTION: Final = "gateway"
"""The file in the folder of a JVM with the port and the secret of its gateway. The JVM writes it."""
_NOTE: Final = "jvm.json"
_WAIT_SECONDS: Final = 0.02
_KILL_SECONDS_MAX: Final = 5.0
_STANDARD_OUTPUT: Final = 1
# What Spark opens for itself on Java 17 and later (org.apache.spark.launcher.JavaModuleOptions), without the module for
# vectors, which no task here uses and not every runtime has.
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.cs=ALL-UNNAMED",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


class JvmError(Exception):
    """No JVM of Spark could be started, or reached. The message says why."""


def java_command(settings: Mapping[str, str]) -> list[str]:
    """The command of a JVM that serves a Python process and ends with its standard input."""
    home = os.environ.get("JAVA_HOME")
    spark_home = _spark_home()
    folders = [os.environ.get("SPARK_CONF_DIR") or str(spark_home / "conf"), str(spark_home / "jars" / "*")]
    folders += [os.environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)]
    command = [str(Path(home) / "bin" / "java") if home else "java", "-cp", os.pathsep.join(folders)]
    command += [f"-Xmx{settings[HEAP]}", *shlex.split(settings[JAVA_OPTIONS]), *MODULE_OPTIONS]
    command.append("org.apache.spark.deploy.SparkSubmit")
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    return [*command, "pyspark-shell"]


def java_environment(folder: Path) -> dict[str, str]:
    """Variables for the command on top of this process's own. `folder`: that of the JVM."""
    return {
        "SPARK_HOME": str(_spark_home()),
        "SPARK_CONNECT_MODE": "0",
        # Each thread of the JVM would have memory of its own from the C library.
        "MALLOC_ARENA_MAX": "2",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / CONNECTION),
    }


def _spark_home() -> Path:
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise JvmError("PySpark is not installed")
    return Path(package.origin).parent


def start_jvm(settings: Mapping[str, str], folder: Path, seconds_max: float) -> subprocess.Popen[bytes]:
    """Starts a JVM that ends with this process, and waits for its gateway.

    It also ends with the calling thread: the kernel kills it then. Raises JvmError.
    """
    (folder / CONNECTION).unlink(missing_ok=True)
    spec = ChildSpec(name="jvm", command=tuple(java_command(settings)), environment=java_environment(folder))
    process = launch(spec, _STANDARD_OUTPUT, subprocess.PIPE)
    deadline = time.monotonic() + seconds_max
    while not (folder / CONNECTION).exists():
        if process.poll() is not None:
            raise JvmError(f"the JVM of Spark exited with code {process.returncode} during its start")
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise JvmError(f"the JVM of Spark did not start within {seconds_max:g} s")
        time.sleep(_WAIT_SECONDS)
    return process


class _Note(msgspec.Struct, frozen=True, kw_only=True):
    """Which folder is that of the JVM that runs, and the JVM's process number."""

    name: str
    pid: int


class SupervisedJvm:
    """A JVM that the supervisor has started, not this process. It lives as long as it holds the lock of its folder."""

    def __init__(self, parent: Path, note: _Note) -> None:
        self._parent = parent
        self._note = note
        self.pid = note.pid
        self.folder = parent / note.name

    def poll(self) -> int | None:
        """None while it lives, as of a child of this process."""
        return None if is_alive(self._parent, self._note.name) else -signal.SIGKILL

    def wait(self, timeout: float) -> int:
        """Waits for its end, as for a child of this process. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("java", timeout)
            time.sleep(_WAIT_SECONDS)
        return code

    def kill(self) -> None:
        """Ends it at once, if it lives. The supervisor starts another one."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.wait(_KILL_SECONDS_MAX)


def note_jvm(parent: Path, name: str) -> None:
    """Notes that this process becomes the JVM of the folder `name` below `parent`, whose lock it holds."""
    write_private(parent / _NOTE, msgspec.json.encode(_Note(name=name, pid=os.getpid())).decode())


def ready_jvms(parent: Path, seconds_max: float) -> Iterator[SupervisedJvm]:
    """The JVM of the supervisor, once its gateway is ready; the next one after it was found unfit and killed; and so
    on. Raises JvmError after `seconds_max`.
    """
    deadline = time.monotonic() + seconds_max
    while True:
        jvm = _noted_jvm(parent)
        if jvm is not None and jvm.poll() is None and (jvm.folder / CONNECTION).exists():
            yield jvm
        if time.monotonic() > deadline:
            raise JvmError(
                f"the supervisor has started no JVM that serves within {seconds_max:g} s; see its log"
            )
        time.sleep(_WAIT_SECONDS)


def _noted_jvm(parent: Path) -> SupervisedJvm | None:
    try:
        return SupervisedJvm(parent, msgspec.json.decode((parent / _NOTE).read_bytes(), type=_Note))
    except (FileNotFoundError, msgspec.DecodeError):
        return None
