"""Composes the use cases of tenants and keys."""

from __future__ import annotations

from app.administration.service import Administration, AuditReader, Identities
from app.audit.repository.audit import AuditStore
from app.audit.service import ReadAudit
from app.db.session import Database
from app.tenants.repository.administration import AdministrationStore
from app.tenants.repository.credentials import CredentialStore


def dependencies(
    keys: CredentialStore, administration: Database | None, audit: AuditStore
) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use.

    `administration`: with the administration's login; None if the deployment has none.
    """
    store = None if administration is None else AdministrationStore(administration)
    use_cases = Administration(store=store)
    return {
        "administration": use_cases,
        "identities": Identities(keys=keys),
        "audit_reader": AuditReader(audit=ReadAudit(store=audit), administration=use_cases),
    }
