"""Makes a backup: the rows of all tables at one moment, then the files of the storage, while none is deleted."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from app.infra.db.copying import CopyFailed, Snapshot, deletion_hold, snapshot
from app.process.backup.folder import make_folder, write_manifest, write_table
from app.process.backup.manifest import FORMAT, BackupError, BackupManifest
from app.process.tables import metadata
from migrations import revisions

STORAGE_SECONDS_MAX: Final = 86_400
"""The time after which the command that copies the storage is ended: meanwhile the storage only grows."""


def back_up(
    url: str,
    folder: Path,
    *,
    storage_uri: str = "",
    storage_command: Sequence[str] = (),
    storage_seconds_max: float = STORAGE_SECONDS_MAX,
    progress: Callable[[str], None] = lambda _: None,
) -> BackupManifest:
    """Copies all rows to a new folder; then runs the command that copies the storage.

    No process deletes files from before the snapshot until the command has ended, so the copy has every file that the
    rows refer to. `url`: postgresql://… of the schema's owner. Raises BackupError; the folder then has no manifest.
    """
    make_folder(folder)
    try:
        with deletion_hold(url) as hold:
            with snapshot(url) as rows:
                manifest = _copy_rows(rows, folder, storage_uri, with_storage=bool(storage_command))
            progress(f"{manifest.rows:,} rows of {len(manifest.tables)} tables are in {folder}")
            if storage_command:
                _run(storage_command, storage_seconds_max)
                hold.check()
            write_manifest(folder, manifest)
            return manifest
    except CopyFailed as error:
        raise BackupError(f"the database cannot be backed up: {error}") from error
    except OSError as error:
        raise BackupError(f"{folder} cannot be written: {error.strerror or error}") from error


def _copy_rows(rows: Snapshot, folder: Path, storage_uri: str, *, with_storage: bool) -> BackupManifest:
    taken_at, revision = rows.begin(), rows.revision()
    if revision != revisions()[-1]:
        raise BackupError(
            f"the schema is at migration {revision or 'none'}, this release has {revisions()[-1]}: "
            "use the release of the service"
        )
    tables = metadata.sorted_tables
    if foreign_tables := set(rows.tables()) - {table.name for table in tables}:
        raise BackupError(f"the schema has tables of something else: {', '.join(sorted(foreign_tables))}")
    tenants = rows.tenants()
    contents = []
    for table in tables:
        # SQLAlchemy's names are of a type of its own.
        name, columns = str(table.name), [str(column.name) for column in table.columns]
        copy = partial(rows.copy_out, name, columns, tenants)
        contents.append(write_table(folder, name, columns, copy))
    return BackupManifest(
        format=FORMAT,
        release=version("headwater"),
        revision=revision,
        taken_at=taken_at,
        storage_uri=storage_uri,
        storage_copied=with_storage,
        tables=tuple(contents),
        sequences=tuple(rows.sequences()),
    )


def _run(command: Sequence[str], seconds_max: float) -> None:
    try:
        status = subprocess.run(list(command), check=False, timeout=seconds_max).returncode
    except subprocess.TimeoutExpired as error:
        raise BackupError(f"the storage was not copied within {seconds_max:g} s: {command[0]}") from error
    except OSError as error:
        raise BackupError(f"{command[0]} cannot be run: {error.strerror}") from error
    if status != 0:
        raise BackupError(f"the storage was not copied: {command[0]} ended with exit status {status}")
