"""An administrative request, recorded in the first transaction that it changes something in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from app.access.audit.repository.audit import AuditStore, add_entry, has_changed
from app.access.audit.values import NewEntry
from app.infra.db.acts import begin_act


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
