"""The audit in Postgres: entries, and the acts that are recorded in the transactions of what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from sqlalchemy import ColumnClause, Connection, Row, column, delete, insert, select, text

from app.access.audit.tables import audit
from app.access.audit.values import (
    UNAUTHENTICATED,
    AccessOutcome,
    AccessVia,
    AuditEntry,
    AuditFilter,
    Caller,
    NewEntry,
)
from app.access.tenants.tables import api_keys
from app.infra.db.acts import begin_act
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago
from app.infra.identifiers import id_at
from app.kernel.paging import Page, PageTokens

_COLUMNS: Final = (
    audit.c.route.label("path"),
    *(audit.c[name] for name in AuditEntry.__struct_fields__ if name != "path"),
)
_HAS_CHANGED: Final = text("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
_ROW: Final[ColumnClause[str]] = column("ctid")


class AuditStore:
    """The audit. `administration`: with the administration's login, which sees that of all tenants."""

    def __init__(self, database: Database, administration: Database | None = None) -> None:
        self._database = database
        self._administration = administration

    @property
    def sees_all(self) -> bool:
        """Whether the entries of all tenants can be listed."""
        return self._administration is not None

    def add(self, tenant_id: str, entries: Sequence[NewEntry]) -> None:
        """Adds entries of a tenant in a transaction of their own."""
        with self._database.tenant(tenant_id) as connection:
            for entry in entries:
                add_entry(connection, tenant_id, entry)

    def entries(
        self, tenant_id: str | None, entry_filter: AuditFilter, *, page_size: int, page_token: str | None
    ) -> Page:
        """AuditEntry items, the newest first: those of this tenant, or of all tenants, for which see `sees_all`.

        Raises InvalidRequest for a token that is not valid.
        """
        tokens = PageTokens("audit", tenant_id, entry_filter)
        query = select(*_COLUMNS).order_by(audit.c.id.desc()).limit(page_size + 1)
        conditions = {
            audit.c.tenant_id: entry_filter.tenant_id,
            audit.c.key_id: entry_filter.key_id,
            audit.c.operation: entry_filter.operation,
            audit.c.outcome: None if entry_filter.outcome is None else entry_filter.outcome.value,
            audit.c.via: None if entry_filter.via is None else entry_filter.via.value,
        }
        for each, value in conditions.items():
            if value is not None:
                query = query.where(each == value)
        if entry_filter.since is not None:
            query = query.where(audit.c.at >= entry_filter.since)
        if entry_filter.until is not None:
            query = query.where(audit.c.at < entry_filter.until)
        if page_token is not None:
            query = query.where(audit.c.id < tokens.id(page_token))
        with self._session(tenant_id) as connection:
            rows = connection.execute(query).all()
        return tokens.page(rows, page_size, lambda row: row.id, _entry_of)

    def expire(self, tenant_id: str, *, keep_seconds: float, limit: int) -> int:
        """Deletes up to `limit` entries of a tenant that are older; returns their number."""
        old = audit.c.at < seconds_ago(keep_seconds)
        some = select(_ROW).select_from(audit).where(old).limit(limit)
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(delete(audit).where(_ROW.in_(some))).rowcount

    def owner_of(self, digest: bytes) -> Caller | None:
        """Whose key this is or was, revoked and expired ones included."""
        query = select(api_keys.c.tenant_id, api_keys.c.id, api_keys.c.name)
        with self._database.credential(digest) as connection:
            row = connection.execute(query.where(api_keys.c.digest == digest)).one_or_none()
        return None if row is None else Caller(tenant_id=row.tenant_id, key_id=row.id, key_name=row.name)

    def _session(self, tenant_id: str | None) -> AbstractContextManager[Connection]:
        if tenant_id is not None:
            return self._database.tenant(tenant_id)
        if self._administration is None:
            raise AssertionError("the entries of all tenants need the administration's login")
        return self._administration.administration()


def _entry_of(row: Row[Any]) -> AuditEntry:
    """The entry in a row of _COLUMNS."""
    tenant_id = None if row.tenant_id == UNAUTHENTICATED else row.tenant_id
    values = {"tenant_id": tenant_id, "outcome": AccessOutcome(row.outcome), "via": AccessVia(row.via)}
    return AuditEntry(**{**row._asdict(), **values})


def has_changed(connection: Connection) -> bool:
    """Whether the transaction has changed or locked rows."""
    return bool(connection.execute(_HAS_CHANGED).scalar_one())


def add_entry(connection: Connection, tenant_id: str, entry: NewEntry) -> None:
    """Adds an entry of a tenant in this transaction."""
    # Counts are stored after acts that are younger: the order of ids, by which entries are listed, is that of `at`.
    times = select(seconds_ago(entry.first_age_seconds), seconds_ago(entry.age_seconds))
    first_at, at = connection.execute(times).one()
    values: dict[str, Any] = {
        "tenant_id": tenant_id,
        "id": id_at(at),
        "first_at": first_at,
        "at": at,
        "key_tenant_id": entry.caller.tenant_id,
        "key_id": entry.caller.key_id,
        "key_name": entry.caller.key_name,
        "operation": entry.operation.id,
        "method": entry.operation.method,
        "route": entry.operation.path,
        "outcome": entry.outcome.value,
        "via": entry.via.value,
        **{
            name: getattr(entry, name)
            for name in ("resources", "members", "address", "status", "code", "request_id", "count")
        },
    }
    connection.execute(insert(audit).values(values))


class Act:
    """One administrative request. `entry` makes its row, from the ids that are known when it is added."""

    def __init__(
        self, store: AuditStore, tenant_id: str, entry: Callable[[Mapping[str, str]], NewEntry]
    ) -> None:
        self._store = store
        self._tenant_id = tenant_id
        self._entry = entry
        self._ids: dict[str, str] = {}
        self._added = False
        self.recorded = False

    def begin(self) -> None:
        """The rest of this request, in whichever thread, is part of the act."""
        begin_act(self)

    def concerns(self, **ids: str) -> None:
        """See `RecordedAct`."""
        self._ids.update(ids)

    def committing(self, connection: Connection, *, administration: bool) -> None:
        """Adds the entry if the transaction changes something and none was added. A tenant sees what is done to it."""
        self._added = not self.recorded and has_changed(connection)
        if self._added:
            tenant_id = self._ids.get("tenant", self._tenant_id) if administration else self._tenant_id
            add_entry(connection, tenant_id, self._entry(self._ids))

    def committed(self) -> None:
        """See `RecordedAct`."""
        self.recorded = self.recorded or self._added

    def record(self) -> None:
        """Adds the entry of an act that changes nothing in Postgres. Raises Unavailable."""
        if self.recorded:
            return
        # First, or the transaction of the entry would be recorded as one of the act, with a second entry.
        self.recorded = True
        try:
            self._store.add(self._tenant_id, [self._entry(self._ids)])
        except BaseException:
            self.recorded = False
            raise
