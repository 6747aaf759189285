"""The storage and the data folder: whether files can be written, read, listed, deleted, and never overwritten."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Final

from app.infra.files.probe import readable_bytes
from app.infra.files.storage import LocalStorage, Storage, is_new, open_storage
from app.infra.identifiers import new_id
from app.infra.settings import Settings
from app.infra.sharing.single_flight import in_daemon_thread
from app.kernel.format.errors import HeadwaterError
from app.process.doctor.values import Diagnosis, failed, ok

_SECONDS_MAX: Final = 20.0
_CONTENT: Final = b"written by headwater doctor\n"
_FOLDER: Final = "doctor"


def storage_checks(settings: Settings) -> list[Diagnosis]:
    """The checks of the storage and of the data folder. Wait for a storage that hangs for a bounded time."""
    check = in_daemon_thread(partial(_check, settings), "storage check")
    try:
        diagnosis = check.result(_SECONDS_MAX)
    except TimeoutError:
        diagnosis = failed("storage", f"{settings.storage_uri} did not answer within {_SECONDS_MAX:g} s")
    return [diagnosis, disk_check(settings.data_dir, settings.disk_free_bytes_min)]


def _check(settings: Settings) -> Diagnosis:
    try:
        return storage_check(open_storage(settings.storage_uri), settings)
    except Exception as error:
        return failed("storage", f"{settings.storage_uri}: {_reason(error)}")


def storage_check(storage: Storage, settings: Settings) -> Diagnosis:
    """Writes, reads, lists and deletes a small file."""
    uri = settings.storage_uri
    if isinstance(storage, LocalStorage) and is_new(storage, settings.data_dir):
        return ok("storage", f"{uri}: the folder is made at the first start")
    path, step = f"{_FOLDER}/{new_id()}", "written"
    try:
        with storage.create(path) as file:
            file.write(_CONTENT)
        step = "read"
        if storage.open(path).read() != _CONTENT:
            return failed("storage", f"{uri}: a file that was just written has other bytes")
        if isinstance(storage, LocalStorage) and not _is_protected(storage, path):
            return failed("storage", f"{uri}: a file can be created a second time under its path")
        step = "listed"
        in_list = path in {file_path for file_path, _ in storage.list(_FOLDER)}
        step = "deleted"
        storage.delete([path])
    except Exception as error:
        return failed("storage", f"{uri}: a file cannot be {step}: {_reason(error)}")
    if not in_list:
        return failed("storage", f"{uri}: a new file is missing in the list of its folder")
    fault = (
        _space_fault(storage.root, settings.disk_free_bytes_min)
        if isinstance(storage, LocalStorage)
        else None
    )
    if fault:
        return failed("storage", fault)
    return ok("storage", f"{uri}: files are written, read, listed and deleted")


def _is_protected(storage: LocalStorage, path: str) -> bool:
    """Whether a folder refuses a second file of a name. Objects are not tried: their names are never used twice."""
    try:
        with storage.create(path) as file:
            file.write(_CONTENT)
    except FileExistsError:
        return True
    return False


def disk_check(folder: Path, free_bytes_min: int) -> Diagnosis:
    """Whether this process can write its data folder, and how much space it has."""
    probe = folder / f"doctor-{new_id()}"
    if not folder.exists():
        return ok("data folder", f"{folder} is made at the first start")
    try:
        probe.write_bytes(_CONTENT)
        probe.unlink()
    except OSError as error:
        return failed("data folder", f"{folder} of HEADWATER_DATA_DIR cannot be written: {error.strerror}")
    if fault := _space_fault(folder, free_bytes_min):
        return failed("data folder", fault)
    free = readable_bytes(shutil.disk_usage(folder).free)
    return ok("data folder", f"{folder} can be written; {free} are free")


def _space_fault(folder: Path, free_bytes_min: int) -> str | None:
    """Why `GET /health/service` is 503 for the disk of a folder; None if it has enough space."""
    free = shutil.disk_usage(folder).free
    if free >= free_bytes_min:
        return None
    return (
        f"{folder}: {readable_bytes(free)} free; the minimum is {readable_bytes(free_bytes_min)} "
        "(HEADWATER_DISK_FREE_BYTES_MIN)"
    )


def _reason(error: Exception) -> str:
    return error.detail if isinstance(error, HeadwaterError) else str(error)
