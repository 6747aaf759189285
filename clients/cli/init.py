"""`headwater init`."""

import sys
from pathlib import Path

from sqlalchemy.exc import OperationalError

import app.infra.runtime.collector  # noqa: F401  (before all that loads modules)
from app.access.tenants.bootstrap import BootstrapResult, RightsMissing, initialise
from app.access.tenants.values import new_api_key
from app.infra.files import storage
from app.infra.runtime.collector import start_collector
from app.infra.runtime.private_file import write_private
from app.infra.settings import Settings
from app.process.doctor import Examined, Verdict, examine
from app.process.doctor.postgres import OWNER_LOGIN, server_fault
from clients.cli.settings import settings_without_redis
from headwater_client.cli.failure import CommandError


def init(
    *, key_file: Path | None = None, create_bucket: bool = False, new_operator_key: bool = False
) -> None:
    """Migrate the schema to head, and create the default tenant and the first operator key if they are missing.

    The key is printed only once: the database stores its digest.


    Parameters
    ----------
    key_file
        Write a new key to this file, readable by its owner only, instead of printing it.
    create_bucket
        Create the bucket of HEADWATER_STORAGE_URI if it is missing.
    new_operator_key
        Create one more operator key, because the earlier one is lost or has leaked. Revoke that one afterwards.
    """
    start_collector()
    settings = settings_without_redis()
    if new_operator_key and key_file is not None and key_file.exists():
        raise CommandError(f"{key_file} has a key already: move it away, or name another --key-file")
    if fault := server_fault(settings.migration_database_url, OWNER_LOGIN):
        raise CommandError(fault.detail)
    if create_bucket:
        _create_bucket(settings.storage_uri)
    try:
        result = _initialise(settings, key_file, another_key=new_operator_key)
    except RightsMissing as error:
        raise CommandError(str(error)) from error
    except OperationalError as error:
        raise CommandError(f"the database of HEADWATER_MIGRATION_DATABASE_URL: {error.orig}") from error
    if result.api_key is None:
        print(
            f"The schema is at head. Tenant {result.tenant_id} already has an operator key. "
            "--new-operator-key creates another one."
        )
    elif key_file is not None:
        print(f"The schema is at head. The operator key of tenant {result.tenant_id} is in {key_file}.")
    else:
        print(
            f"The schema is at head. The operator key of tenant {result.tenant_id}, which is only shown now:"
        )
        print(result.api_key)
    _report_faults(settings)


def _create_bucket(storage_uri: str) -> None:
    try:
        storage.create_bucket(storage_uri)
    except OSError as error:
        raise CommandError(f"the bucket of HEADWATER_STORAGE_URI cannot be created: {error}") from error


def _report_faults(settings: Settings) -> None:
    """Print what is wrong with the database and its logins. Raise CommandError if the service cannot use it."""
    for found in examine(settings, Examined.DATABASE):
        if found.verdict is Verdict.FAILED:
            raise CommandError(f"{found.name}: {found.detail}")
        if found.verdict is Verdict.WARNING:
            print(f"headwater: {found.name}: {found.detail}", file=sys.stderr)


def _initialise(settings: Settings, key_file: Path | None, *, another_key: bool) -> BootstrapResult:
    """Initialise with the file's key. The key is written first, so that a kill in between does not lose it."""
    key = None
    is_new = key_file is not None and not key_file.exists()
    if key_file is not None:
        if is_new:
            write_private(key_file, f"{new_api_key()}\n")
        key = key_file.read_text(encoding="utf-8").strip()
    result = initialise(
        settings.migration_database_url,
        application_url=settings.database_url,
        administration_url=settings.admin_database_url or None,
        api_key=key,
        another_key=another_key,
    )
    if result.api_key is None and is_new and key_file is not None:
        key_file.unlink()  # the database has another key, which is not known here
    return result
