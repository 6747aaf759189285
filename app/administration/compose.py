"""Composes the use cases of tenants and keys."""

from __future__ import annotations

from app.administration.service import Administration, Identities
from app.db.session import Database
from app.tenants.repository.administration import AdministrationStore
from app.tenants.repository.credentials import CredentialStore


def dependencies(keys: CredentialStore, administration: Database | None) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use.

    `administration`: with the administration's login; None if the deployment has none.
    """
    store = None if administration is None else AdministrationStore(administration)
    return {"administration": Administration(store=store), "identities": Identities(keys=keys)}
