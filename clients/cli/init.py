"""`headwater init`."""

from pathlib import Path

from app.store.bootstrap import initialise
from sqlalchemy.exc import OperationalError

from app.runtime.private_file import write_private
from app.settings import Settings
from clients.cli.failure import CommandError


def init(*, key_file: Path | None = None) -> None:
    """Bring the schema to head, and make the default tenant and the first operator key unless they exist.

    The key is shown this once: the database keeps only its digest.

    Parameters
    ----------
    key_file
        Write a new key to this file, readable by its owner only, rather than print it.
    """
    settings = Settings.from_environment()
    try:
        result = initialise(settings.migration_database_url)
    except OperationalError as error:
        raise CommandError(
            f"cannot use the database of HEADWATER_MIGRATION_DATABASE_URL: {error.orig}"
        ) from error
    if result.api_key is None:
        print(f"The schema is at head. Tenant {result.tenant_id} has its operator key already.")
    elif key_file is not None:
        write_private(key_file, f"{result.api_key}\n")
        print(f"The schema is at head. The operator key of tenant {result.tenant_id} is in {key_file}.")
    else:
        print(f"The schema is at head. The operator key of tenant {result.tenant_id}, shown this once:")
        print(result.api_key)
