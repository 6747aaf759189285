"""The JVM of a worker that the supervisor restarts: `python -m workers.jvm FOLDER` becomes it.

It lives on when the worker is killed, and the next worker takes it over. Its folder is one below FOLDER, which it holds
the lock of.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from app.infra.settings import Settings, SettingsError
from workers.engine.jvm import java_command, java_environment, note_jvm
from workers.engine.scratch import lock_folder, remove_abandoned
from workers.engine.spark_settings import ONE_THREAD, ClusterShare, session_settings

# It only schedules tasks: no rows are in it, and no SQL of tenants.
_HEAP_BYTES: Final = 1024**3
# By default Java gives new objects a part of the machine's memory, and keeps it while the worker is idle.
_SMALL_YOUNG_GENERATION: Final = "-XX:NewSize=16m -XX:MaxNewSize=48m -Xms96m"
_MEBIBYTE: Final = 1024 * 1024


def share_of(settings: Settings) -> ClusterShare:
    """What a process of the worker takes of a cluster."""
    return ClusterShare(
        cores_max=settings.spark_cores_max,
        executor_cores=settings.spark_executor_cores,
        executor_memory_bytes=settings.spark_executor_memory_bytes,
        dynamic_allocation=settings.spark_dynamic_allocation,
        locality_wait_seconds=settings.spark_locality_wait_seconds,
        driver_host=settings.spark_driver_host,
        bind_address=settings.spark_bind_address,
        driver_port=settings.spark_driver_port,
        block_manager_port=settings.spark_block_manager_port,
    )


def driver_memory(heap_bytes: int = _HEAP_BYTES) -> str:
    """The size of a heap as Spark and Java read it; by default that of the JVM of a worker."""
    return f"{heap_bytes // _MEBIBYTE}m"


def worker_session_settings(settings: Settings, folder: Path) -> dict[str, str]:
    """The settings of the session of a worker, in the JVM whose folder this is."""
    return session_settings(
        settings.spark_master,
        folder,
        driver_memory=driver_memory(),
        share=share_of(settings),
        java_options=_SMALL_YOUNG_GENERATION,
    )


def main() -> None:
    """Removes the folders of JVMs that have ended, and becomes a new one."""
    parent = Path(sys.argv[1])
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.exit(f"headwater: {error}")
    remove_abandoned(parent, lambda _: None)
    name = f"{os.getpid()}-{os.urandom(3).hex()}"
    lock = lock_folder(parent, name)
    # The JVM keeps the lock.
    os.set_inheritable(lock.fileno(), True)
    note_jvm(parent, name)
    folder = parent / name
    command = java_command(worker_session_settings(settings, folder))
    os.environ.update(ONE_THREAD, **java_environment(folder))
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.exit(f"headwater: cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
