"""`headwater backup`, `headwater server restore` and `headwater server verify`."""

from __future__ import annotations

import sys
from pathlib import Path

from app.features.retention.compose import check_files
from app.infra.db.session import Database
from app.infra.files.storage import open_storage
from app.infra.settings import Settings
from app.kernel.format.errors import HeadwaterError
from app.process.backup import BackupError, back_up
from app.process.backup import restore as restore_backup
from app.process.backup.take import STORAGE_SECONDS_MAX
from app.process.doctor import Verdict
from app.process.doctor.postgres import service_checks
from clients.cli.settings import settings_without_redis
from headwater_client.cli.failure import CommandError

_FAULTS_SHOWN = 100


def backup(folder: Path, *command: str, storage_seconds: float = STORAGE_SECONDS_MAX) -> None:
    """Copy all rows of the database to a new folder, then copy the storage by a command, while no file is deleted.

    Needs HEADWATER_MIGRATION_DATABASE_URL. The service may run. The folder has secrets: protect it.

    Parameters
    ----------
    folder
        The folder, which is made. It must have no files.
    command
        The command that copies the storage, after --, such as: -- rclone sync /srv/storage backup:storage
    storage_seconds
        The time after which that command is ended.
    """
    settings = settings_without_redis()
    try:
        manifest = back_up(
            settings.migration_database_url,
            folder,
            storage_uri=settings.storage_uri,
            storage_command=command,
            storage_seconds_max=storage_seconds,
            progress=lambda line: print(line, flush=True),
        )
    except BackupError as error:
        raise CommandError(str(error)) from error
    print(f"{folder} is a backup of {manifest.taken_at.isoformat(timespec='seconds')}.")
    if not command:
        print(f"It does not have the files of {settings.storage_uri}: no command copied them.")


def restore(folder: Path) -> None:
    """Load a backup into an empty database, migrate it to this release, and check that the storage has its files.

    Needs HEADWATER_MIGRATION_DATABASE_URL and the settings of the service. The service must not run yet.

    Parameters
    ----------
    folder
        The folder of the backup.
    """
    settings = settings_without_redis()
    try:
        manifest, _ = restore_backup(
            settings.migration_database_url,
            folder,
            application_url=settings.database_url,
            administration_url=settings.admin_database_url or None,
        )
    except (BackupError, HeadwaterError) as error:
        raise CommandError(str(error)) from error
    taken_at = manifest.taken_at.isoformat(timespec="seconds")
    print(f"{manifest.rows:,} rows of {taken_at} are restored, and the schema is at head.", flush=True)
    _verify(settings, contents=False)


def verify(*, contents: bool = False) -> None:
    """Check that the storage has every file that the database refers to. Exits with 1 if one is missing or damaged.

    Parameters
    ----------
    contents
        Read all files, and compare their sizes and checksums with those that were recorded when they were written.
    """
    _verify(settings_without_redis(), contents=contents)


def _verify(settings: Settings, *, contents: bool) -> None:
    for found in service_checks(settings):
        if found.verdict is Verdict.FAILED:
            raise CommandError(f"{found.name}: {found.detail}")
    shown = 0

    def show(fault: str) -> None:
        nonlocal shown
        shown += 1
        if shown <= _FAULTS_SHOWN:
            print(fault, file=sys.stderr, flush=True)

    database = Database(settings.database_url, application_name="headwater server verify", connections_max=1)
    try:
        report = check_files(database, open_storage(settings.storage_uri)).run(show, contents=contents)
    except HeadwaterError as error:
        raise CommandError(error.detail) from error
    finally:
        database.close()
    checked = f"{report.files:,} files of {report.datasets:,} datasets in {settings.storage_uri}"
    if report.faults:
        raise CommandError(f"{report.faults:,} of {checked} are missing or damaged")
    print(f"{checked} are there{', with the recorded checksums' if contents else ''}.")
