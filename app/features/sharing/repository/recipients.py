"""Recipients of shares and their tokens in Postgres. Only the digest of a token is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.access.errors import Forbidden, NotFound, PreconditionFailed
from app.access.tenants.repository.credential_changes import notify_change
from app.access.tenants.repository.quotas import check_count
from app.core.catalog.repository.live_datasets import share_datasets, share_schemas
from app.features.sharing.errors import RecipientExists, RecipientExpired
from app.features.sharing.repository.shares import lock_share
from app.features.sharing.tables import recipients, share_tokens
from app.features.sharing.values import NewRecipient, Recipient, share_token_digest
from app.infra.db.acts import act_concerns
from app.infra.db.session import Database
from app.infra.db.times import lease_end
from app.kernel.format.identifiers import is_uuid
from app.kernel.paging import Page, PageTokens

_COUNT: Final[Select[int]] = select(func.count()).select_from(recipients)
_NOW: Final = func.clock_timestamp()
_PREVIOUS: Final = (
    select(func.max(share_tokens.c.ends_at))
    .where(share_tokens.c.recipient_id == recipients.c.id, share_tokens.c.ends_at > _NOW)
    .scalar_subquery()
    .label("previous_token_until")
)
_COLUMNS: Final = tuple(
    _PREVIOUS if name == "previous_token_until" else recipients.c[name]
    for name in Recipient.__struct_fields__
)


class ShareRecipientStore:
    """The recipients of the shares of tenants, as the tenants manage them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        tenant_id: str,
        share_id: str,
        recipient_id: str,
        new: NewRecipient,
        token: str,
        *,
        created_by: str,
    ) -> Recipient:
        """Raises NotFound, RecipientExists, SchemaChanged, QuotaExceeded."""
        with self._database.tenant(tenant_id) as connection:
            _keep_schemas(connection, new)
            share = lock_share(connection, share_id)
            act_concerns(share=share.id, recipient=recipient_id)
            values = {**_values(new), "id": recipient_id, "share_id": share.id, "created_by": created_by}
            try:
                with connection.begin_nested():
                    connection.execute(insert(recipients).values(values))
            except IntegrityError:
                raise _name_taken(new.name) from None
            _add_token(connection, recipient_id, token)
            check_count(connection, "recipients", _COUNT)
            return _find(connection, share.id, recipient_id)

    def get(self, tenant_id: str, share_id: str, reference: str) -> Recipient:
        """The recipient of this id or name. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return _find(connection, share_id, reference)

    def list(self, tenant_id: str, share_id: str, *, page_size: int, page_token: str | None) -> Page:
        """Recipient items of a share, by name. Raises InvalidRequest for a token that is not valid."""
        tokens = PageTokens("recipients", tenant_id, share_id)
        query = (
            select(*_COLUMNS)
            .where(recipients.c.share_id == share_id)
            .order_by(recipients.c.name)
            .limit(page_size + 1)
        )
        if page_token is not None:
            query = query.where(recipients.c.name > tokens.position(page_token))
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query).all()
        return tokens.page(rows, page_size, lambda row: row.name, _recipient_of)

    def change(
        self, tenant_id: str, share_id: str, recipient_id: str, new: NewRecipient, *, revision: int
    ) -> Recipient:
        """Changes a recipient that must be at `revision` still, at once.

        Raises NotFound, PreconditionFailed, RecipientExists, SchemaChanged.
        """
        with self._database.tenant(tenant_id) as connection:
            _keep_schemas(connection, new)
            lock_share(connection, share_id)
            before = _lock(connection, share_id, recipient_id, revision)
            values = {**_values(new), "revision": recipients.c.revision + 1}
            try:
                with connection.begin_nested():
                    connection.execute(update(recipients).where(recipients.c.id == before.id).values(values))
            except IntegrityError:
                raise _name_taken(new.name) from None
            notify_change(connection, tenant_id)
            return _find(connection, share_id, before.id)

    def rotate(
        self,
        tenant_id: str,
        share_id: str,
        reference: str,
        token: str,
        *,
        overlap_seconds: float,
        only_with_grants: bool = False,
    ) -> Recipient:
        """Gives a recipient another token. The one before is valid for the overlap, and others end.

        Raises NotFound, RecipientExpired, and Forbidden with `only_with_grants` for one that sees all of the share.
        """
        with self._database.tenant(tenant_id) as connection:
            recipient = _lock(connection, share_id, reference, None)
            if only_with_grants and recipient.grants is None:
                raise Forbidden(
                    "the recipient sees all that the share has now and later, and this key has grants: a key without "
                    "grants can rotate its token"
                )
            if recipient.expires_at is not None and recipient.expires_at <= datetime.now(UTC):
                raise RecipientExpired(
                    f"the recipient expired at {recipient.expires_at.isoformat()}, so a new token would be refused: "
                    "change its expires_at first",
                    expires_at=recipient.expires_at.isoformat(),
                )
            act_concerns(share=share_id, recipient=recipient.id)
            own = share_tokens.c.recipient_id == recipient.id
            connection.execute(delete(share_tokens).where(own, share_tokens.c.ends_at.is_not(None)))
            if overlap_seconds > 0:
                ends_at = lease_end(overlap_seconds)
                connection.execute(update(share_tokens).where(own).values(ends_at=ends_at))
            else:
                connection.execute(delete(share_tokens).where(own))
            _add_token(connection, recipient.id, token)
            notify_change(connection, tenant_id)
            return _find(connection, share_id, recipient.id)

    def delete(self, tenant_id: str, share_id: str, reference: str, *, revision: int | None) -> None:
        """Deletes a recipient, whose tokens end at once. Raises NotFound, PreconditionFailed."""
        with self._database.tenant(tenant_id) as connection:
            recipient = _lock(connection, share_id, reference, revision)
            act_concerns(share=share_id, recipient=recipient.id)
            connection.execute(delete(recipients).where(recipients.c.id == recipient.id))
            notify_change(connection, tenant_id)

    def count(self, tenant_id: str) -> int:
        """The recipients that count against the quota `recipients`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(_COUNT).scalar_one()


def _values(new: NewRecipient) -> dict[str, Any]:
    return {name: getattr(new, name) for name in ("name", "grants", "expires_at", "requests_per_second")}


def _keep_schemas(connection: Connection, new: NewRecipient) -> None:
    """Keeps the schemas that conditions were checked against as they are. Raises NotFound, SchemaChanged."""
    if not new.schemas:
        return
    if missing := sorted(new.schemas.keys() - share_datasets(connection, list(new.schemas))):
        raise NotFound(f"there is no dataset {missing[0]!r}")
    share_schemas(connection, new.schemas)


def _add_token(connection: Connection, recipient_id: str, token: str) -> None:
    values = {"recipient_id": recipient_id, "digest": share_token_digest(token)}
    connection.execute(insert(share_tokens).values(values))


def _lock(connection: Connection, share_id: str, reference: str, revision: int | None) -> Recipient:
    """The recipient, locked. Raises NotFound, PreconditionFailed."""
    recipient_id = _find(connection, share_id, reference).id
    lock = select(recipients.c.id).where(recipients.c.id == recipient_id).with_for_update()
    connection.execute(lock)
    # Read again: it may have been changed or deleted while this transaction waited.
    recipient = _find(connection, share_id, recipient_id)
    if revision is not None and recipient.revision != revision:
        raise PreconditionFailed(
            f"The recipient is at revision {recipient.revision}, not {revision}", revision=recipient.revision
        )
    return recipient


def _find(connection: Connection, share_id: str, reference: str) -> Recipient:
    row = None
    if "\0" not in reference:
        # A name never has the form of an id.
        this = recipients.c.id == reference if is_uuid(reference) else recipients.c.name == reference
        row = connection.execute(
            select(*_COLUMNS).where(recipients.c.share_id == share_id, this)
        ).one_or_none()
    if row is None:
        raise NotFound(f"there is no recipient {reference!r} of this share")
    return _recipient_of(row)


def _recipient_of(row: Any) -> Recipient:
    return Recipient(**row._asdict())


def _name_taken(name: str) -> RecipientExists:
    return RecipientExists(
        f"the share has a recipient named {name!r} already; choose another name", name=name
    )
