"""Composes the use cases of tenants, keys, quotas and usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.administration.service import Administration, Identities, ReadUsage
from app.db.session import Database
from app.platform import Platform
from app.tenants.repository.administration import AdministrationStore
from app.tenants.repository.credentials import CredentialStore
from app.tenants.repository.quotas import QuotaStore
from app.tenants.repository.usage import UsageStore


def dependencies(
    keys: CredentialStore,
    administration: Database | None,
    platform: Platform,
    counts: Mapping[str, Callable[[str], int]],
) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use.

    `administration`: with the administration's login; None if the deployment has none. `counts`: what a tenant has,
    by the name of its quota.
    """
    store = None if administration is None else AdministrationStore(administration)
    usage = ReadUsage(
        usage=UsageStore(platform.database), metered=QuotaStore(platform.database).metered, counts=counts
    )
    return {
        "administration": Administration(store=store),
        "identities": Identities(keys=keys),
        "usage": usage,
    }
