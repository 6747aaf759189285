"""`headwater table-keys …`: the secret from which keys for the files of tables are derived."""

from __future__ import annotations

from app.features.objects.compose import rotate_secret
from app.features.objects.service.secrets import FRESH_SECONDS
from app.infra.db.session import Database
from app.kernel.format.errors import HeadwaterError
from clients.cli.settings import settings_without_redis
from headwater_client.cli.failure import CommandError


def rotate(*, revoke: bool = False) -> None:
    """Make another secret for the keys with which clients read the files of tables.

    Keys that were made before stay valid until they end. Reads HEADWATER_DATABASE_URL. The service may run.

    Parameters
    ----------
    revoke
        Refuse all keys that were made before, within a minute: clients load their tables again.
    """
    settings = settings_without_redis()
    try:
        generation = rotate_secret(
            Database(settings.database_url, application_name="headwater table-keys"), revokes=revoke
        )
    except HeadwaterError as error:
        raise CommandError(str(error)) from error
    print(f"Keys for tables are made with secret {generation}.")
    if revoke:
        print(f"Those made before are refused in {FRESH_SECONDS:.0f} seconds at the latest.")
    else:
        print("Those made with the secret before stay valid until they end.")
