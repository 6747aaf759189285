"""Composes the use cases of the files of tables. What caches is made by `ApiProcess.once`."""

from __future__ import annotations

from app.core.feature.api import ApiProcess
from app.core.platform import Platform
from app.features.objects.repository.secrets import TableKeySecretStore
from app.features.objects.repository.table_files import TableFileStore
from app.features.objects.service.keys import TableKeys
from app.features.objects.service.renderings import Renderings
from app.features.objects.service.secrets import KnownSecrets
from app.features.objects.service.table_files import FOOTERS_BYTES, TableFiles
from app.infra.db.session import Database
from app.infra.sharing.byte_cache import ByteCache


def table_keys(platform: Platform) -> TableKeys:
    """Makes keys for tables."""
    secrets = KnownSecrets(TableKeySecretStore(platform.database).read)
    return TableKeys(secrets=secrets, seconds=platform.settings.table_key_seconds)


def rotate_secret(database: Database, *, revokes: bool) -> int:
    """Makes another secret for keys of tables; returns its number. Raises Unavailable.

    Keys of the one before are accepted until they end. `revokes`: they are not.
    """
    store = TableKeySecretStore(database)
    if revokes:
        store.rotate()
    return store.rotate()


def process_keys(process: ApiProcess) -> TableKeys:
    """Those of the process, which read the secrets once."""
    return table_keys(process.platform)


def renderings(process: ApiProcess) -> Renderings:
    """How data files are served."""
    stores = process.platform.stores
    return Renderings(stores.catalog, TableFileStore(stores.database))


def table_files(process: ApiProcess) -> TableFiles:
    """The data files of tables."""
    platform = process.platform
    return TableFiles(
        files=TableFileStore(platform.database),
        renderings=process.once(renderings),
        storage=platform.storage,
        footers=ByteCache(FOOTERS_BYTES),
    )
