"""Composes the use cases of the files of tables."""

from __future__ import annotations

from app.core.platform import Platform
from app.features.objects.repository.secrets import TableKeySecretStore
from app.features.objects.repository.table_files import TableFileStore
from app.features.objects.service.keys import TableKeys
from app.features.objects.service.renderings import Renderings
from app.features.objects.service.secrets import KnownSecrets
from app.features.objects.service.table_files import FOOTERS_BYTES, TableFiles
from app.infra.sharing.byte_cache import ByteCache


def known_secrets(platform: Platform) -> KnownSecrets:
    """The secrets of the deployment, as the process knows them."""
    return KnownSecrets(TableKeySecretStore(platform.stores.database).read)


def table_keys(platform: Platform) -> TableKeys:
    """Makes keys for tables."""
    return TableKeys(secrets=known_secrets(platform), seconds=platform.settings.table_key_seconds)


def renderings(platform: Platform) -> Renderings:
    """How data files are served. A process may have several, which only cache on their own."""
    stores = platform.stores
    return Renderings(stores.catalog, TableFileStore(stores.database).kept_schemas)


def table_files(platform: Platform) -> TableFiles:
    """The data files of tables."""
    return TableFiles(
        files=TableFileStore(platform.stores.database),
        renderings=renderings(platform),
        storage=platform.storage,
        footers=ByteCache(FOOTERS_BYTES),
    )
