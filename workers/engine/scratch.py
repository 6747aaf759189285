"""The scratch folder of a worker process, and the removal of those that killed workers have left."""

from __future__ import annotations

import fcntl
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_log = logging.getLogger(__name__)
_LOCK = ".lock"


@contextmanager
def scratch_folder(parent: Path, name: str) -> Iterator[Path]:
    """The folder `name` below `parent`, removed at the end.

    A process has a lock on the file `name`.lock for as long as it lives, however it ends.
    """
    with lock_folder(parent, name):
        folder = parent / name
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            folder.with_name(f"{name}{_LOCK}").unlink(missing_ok=True)


def lock_folder(parent: Path, name: str) -> IO[bytes]:
    """Makes the folder `name` below `parent`; the lock of it, which ends when the file is closed."""
    parent.mkdir(parents=True, exist_ok=True)
    # Locked under another name, so that no other process finds the file before it is locked.
    new_lock = parent / f".{name}"
    file = new_lock.open("wb")
    fcntl.flock(file, fcntl.LOCK_EX)
    new_lock.rename(parent / f"{name}{_LOCK}")
    (parent / name).mkdir()
    return file


def is_alive(parent: Path, name: str) -> bool:
    """Whether the process of the folder `name` below `parent` lives."""
    try:
        with (parent / f"{name}{_LOCK}").open("rb") as file:
            return _is_locked(file)
    except FileNotFoundError:
        return False


def remove_abandoned(parent: Path, on_end: Callable[[str], None]) -> None:
    """Removes the folders of killed processes. `on_end` gets the name of each before; if it raises, the folder stays,
    and the next call tries again.
    """
    for lock in parent.glob(f"*{_LOCK}"):
        with suppress(FileNotFoundError), lock.open("rb") as file:
            if not _is_locked(file):
                _remove(lock, on_end)


def _remove(lock: Path, on_end: Callable[[str], None]) -> None:
    name = lock.name.removesuffix(_LOCK)
    try:
        on_end(name)
    except Exception:
        _log.exception("the claims of the dead worker %s could not be ended yet", name)
        return
    shutil.rmtree(lock.with_name(name), ignore_errors=True)
    lock.unlink(missing_ok=True)
    _log.info("removed the scratch folder of a worker that was killed: %s", name)


def _is_locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
