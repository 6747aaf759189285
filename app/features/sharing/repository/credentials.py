"""Recipients as principals: their tokens, what they may read now, and when they did."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from msgspec import structs
from sqlalchemy import Connection, func, or_, select, update

from app.access.tenants.quotas import quotas_of
from app.access.tenants.repository.credentials import USED_SECONDS
from app.access.tenants.tables import tenants
from app.access.tenants.values import Actor, ActorKind, Grant, KeyScope, Principal, TenantState
from app.core.catalog.tables import datasets
from app.features.sharing.tables import recipients, share_tokens, shared_datasets
from app.features.sharing.values import SHARE_TOKEN, RecipientGrant, access_to, share_token_digest
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.kernel.format.identifiers import is_uuid
from app.kernel.sql.conditions.row_access import RowAccess

_NOW: Final = func.clock_timestamp()
_LASTING: Final = (TenantState.ACTIVE.value, TenantState.SUSPENDED.value)
_TOKENS: Final = select(
    share_tokens.c.tenant_id,
    share_tokens.c.recipient_id,
    func.extract("epoch", share_tokens.c.ends_at - _NOW).label("seconds"),
).where(or_(share_tokens.c.ends_at.is_(None), share_tokens.c.ends_at > _NOW))
_RECIPIENTS: Final = (
    select(
        recipients.c.tenant_id,
        recipients.c.id,
        recipients.c.share_id,
        recipients.c.name,
        recipients.c.grants,
        recipients.c.expires_at,
        recipients.c.requests_per_second,
        func.extract("epoch", recipients.c.expires_at - _NOW).label("seconds"),
        tenants.c.name.label("tenant_name"),
        tenants.c.state,
        tenants.c.suspended_reason,
        tenants.c.quotas,
    )
    .join(tenants, tenants.c.tenant_id == recipients.c.tenant_id)
    .where(
        or_(recipients.c.expires_at.is_(None), recipients.c.expires_at > _NOW),
        any_of(tenants.c.state, _LASTING),
    )
)
_DATASETS: Final = (
    select(datasets.c.id, datasets.c.name)
    .join(shared_datasets, shared_datasets.c.dataset_id == datasets.c.id)
    .where(datasets.c.deleted_at.is_(None))
    .order_by(datasets.c.name)
)


class RecipientStore:
    """The recipients of all shares, as the requests of their tokens need them. See `ActorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def authenticate(self, token: str, /) -> Principal | None:
        """The principal of a live token; None for any other text. It holds no longer than the token."""
        if not SHARE_TOKEN.fullmatch(token):
            return None
        digest = share_token_digest(token)
        with self._database.credential(digest) as connection:
            row = connection.execute(_TOKENS.where(share_tokens.c.digest == digest)).one_or_none()
        if row is None:
            return None
        principal = self.standing(
            Actor(tenant_id=row.tenant_id, id=row.recipient_id, kind=ActorKind.RECIPIENT)
        )
        if principal is None or row.seconds is None:
            return principal
        seconds = min(float(row.seconds), principal.valid_seconds or float("inf"))
        return structs.replace(principal, valid_seconds=seconds)

    def standing(self, actor: Actor, /) -> Principal | None:
        """The principal of a recipient; None if it was deleted or has expired, or if its tenant has ended.

        It may read, and is granted the datasets of its share by the names that they have now.
        """
        if not is_uuid(actor.id):
            return None
        with self._database.tenant(actor.tenant_id) as connection:
            row = connection.execute(_RECIPIENTS.where(recipients.c.id == actor.id)).one_or_none()
            if row is None:
                return None
            grants = _grants(connection, row.share_id, row.grants)
        suspended = row.state == TenantState.SUSPENDED.value
        return Principal(
            tenant_id=row.tenant_id,
            tenant_name=row.tenant_name,
            actor=row.id,
            kind=ActorKind.RECIPIENT,
            key_name=row.name,
            scopes=frozenset({KeyScope.READ}),
            grants=grants,
            suspension=(row.suspended_reason or "") if suspended else None,
            valid_seconds=None if row.seconds is None else float(row.seconds),
            expires_at=row.expires_at,
            quotas=quotas_of(row.quotas),
            requests_per_second=row.requests_per_second,
        )

    def note_use(self, tenant_id: str, recipient_ids: Collection[str], /) -> None:
        """Records that recipients of a tenant read now, unless that is known to be less than a minute ago."""
        long_ago = recipients.c.last_used_at < _NOW - timedelta(seconds=USED_SECONDS)
        statement = (
            update(recipients)
            .where(any_of(recipients.c.id, recipient_ids), or_(recipients.c.last_used_at.is_(None), long_ago))
            .values(last_used_at=_NOW)
        )
        with self._database.tenant(tenant_id) as connection:
            connection.execute(statement)


def _grants(
    connection: Connection, share_id: str, grants: Sequence[RecipientGrant] | None
) -> tuple[Grant, ...]:
    rows = connection.execute(_DATASETS.where(shared_datasets.c.share_id == share_id))
    accesses = ((row.name, access_to(grants, row.id)) for row in rows)
    return tuple(_grant(name, access) for name, access in accesses if access is not None)


def _grant(name: str, access: RowAccess) -> Grant:
    return Grant(
        datasets=name,
        scopes=(KeyScope.READ,),
        where=access.where[0] if access.where else None,
        mask=access.masked or None,
    )
