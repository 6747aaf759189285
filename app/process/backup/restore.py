"""Loads a backup into an empty database, and brings that to the schema of this release."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy.exc import DBAPIError

from app.access.tenants.bootstrap import (
    BootstrapResult,
    RightsMissing,
    check_rights,
    initialise,
    migrate_to,
)
from app.infra.db.copying import CopyFailed, Load, TableHasRows, load
from app.infra.db.examination import DatabaseUnreachable, examination
from app.infra.errors import Unavailable
from app.process.backup.folder import read_manifest, rows_of
from app.process.backup.manifest import BackupError, BackupManifest
from migrations import revisions

# Migrations fill them with values that are of one deployment: those of the backup replace them.
_SEEDS: Final = ("table_key_secrets",)
_COMPLETED_BY_INIT: Final = (
    "If an earlier restore has loaded its rows and failed after that, complete it with `headwater init` and "
    "`headwater server verify`"
)


def restore(
    url: str, folder: Path, *, application_url: str | None = None, administration_url: str | None = None
) -> tuple[BackupManifest, BootstrapResult]:
    """Loads all rows in one transaction; then does what `headwater init` does.

    `url`: postgresql://… of the schema's owner; the other URLs are those of `initialise`. The database has no rows, or
    no schema. Raises BackupError: the database is then as before, has an empty schema, or has all rows and its
    message says how the restore is completed.
    """
    manifest = read_manifest(folder)
    own = revisions()
    if manifest.revision not in own:
        raise BackupError(
            f"the backup has migration {manifest.revision}, which is of a later release (this one has "
            f"{own[-1]}): use Headwater {manifest.release} or later"
        )
    try:
        with examination(url) as database:
            revision = database.revision()
        if revision and revision != manifest.revision:
            raise BackupError(
                f"the database is not empty: its schema is at migration {revision}, the backup has "
                f"{manifest.revision}. Restore into a new database. {_COMPLETED_BY_INIT}"
            )
        check_rights(url, application_url=application_url, administration_url=administration_url)
        if not revision:
            migrate_to(url, manifest.revision)
        with load(url) as rows:
            _load(rows, folder, manifest)
    except TableHasRows as error:
        raise BackupError(f"the backup cannot be restored: {error}. {_COMPLETED_BY_INIT}") from error
    except (CopyFailed, DatabaseUnreachable, RightsMissing) as error:
        raise BackupError(f"the backup cannot be restored: {error}") from error
    except DBAPIError as error:
        raise BackupError(f"the schema cannot be made: {error.orig}") from error
    try:
        bootstrap = initialise(url, application_url=application_url, administration_url=administration_url)
    except (DBAPIError, RightsMissing, Unavailable) as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        raise BackupError(
            "all rows are loaded, but the schema is not that of this release yet. Remove the cause, then complete the "
            f"restore with `headwater init` and `headwater server verify`. The cause: {reason}"
        ) from error
    return manifest, bootstrap


def _load(rows: Load, folder: Path, manifest: BackupManifest) -> None:
    names = [table.name for table in manifest.tables]
    rows.begin(names, _SEEDS)
    for table in manifest.tables:
        row_count = rows.copy_in(table.name, table.columns, rows_of(folder, table))
        if row_count != table.rows:
            raise BackupError(f"{table.file} has {row_count} rows, the manifest {table.rows}")
    rows.continue_sequences(manifest.sequences)
    rows.skip_epochs()
    rows.end(names)
