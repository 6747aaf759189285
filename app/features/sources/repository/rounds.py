"""The rounds of sources, as workers plan and run them. All time is the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Connection, Uuid, case, insert, literal, select, update

from app.access.tenants.quotas import METERED, quotas_of
from app.access.tenants.repository.quotas import STORED_QUOTAS, check_metered
from app.access.tenants.tables import tenants
from app.core.catalog.repository.live_datasets import share_datasets
from app.core.catalog.repository.participants import Derivations
from app.core.consumers.repository.consumers import behind_since, seconds_since
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.repository.job_locks import held_by
from app.core.jobs.tables import instants, jobs
from app.core.jobs.values import Accepted, Claim, JobState, NewJob
from app.core.timeline.values import SourceItem
from app.features.sources.ports import Position, SourceLag
from app.features.sources.repository.cycles import refuse_cycle
from app.features.sources.repository.source_row import find_source, lock_source
from app.features.sources.repository.sources import start_round, unfinished_round
from app.features.sources.tables import source_items, sources
from app.features.sources.values import DataSource, SourceState, is_transient, retry_seconds
from app.infra.db.any_of import any_of
from app.infra.db.claims import ClaimColumns, tenants_in_turn
from app.infra.db.columns import CURRENT_TENANT
from app.infra.db.session import Database
from app.infra.db.times import lease_end
from app.kernel.format.errors import Fault

_CLAIMS: Final = ClaimColumns(due_at=sources.c.due_at, owner=sources.c.planner, epoch=sources.c.epoch)
_ACTIVE: Final = sources.c.state == SourceState.ACTIVE.value
_UNFINISHED: Final = (JobState.QUEUED, JobState.RUNNING)
# A commit makes the source due, and so does a failure. This covers a round that was cancelled.
_POLL_SECONDS: Final = 30.0


class RoundStore:
    """Sources in Postgres, for workers."""

    def __init__(self, database: Database, derivations: Derivations) -> None:
        self._database = database
        self._derivations = derivations

    def due(self, limit: int) -> list[tuple[str, str]]:
        """Tenants and sources whose next round is due; the first of every tenant come before the second of any."""
        query = select(sources.c.tenant_id, sources.c.id).where(_ACTIVE, _CLAIMS.is_due())
        query = tenants_in_turn(query, sources.c.tenant_id, sources.c.due_at, limit)
        with self._database.relay() as connection:
            return [(row[0], row[1]) for row in connection.execute(query)]

    def claim(self, tenant_id: str, source_id: str, owner: str, lease_seconds: float) -> DataSource | None:
        """The source, which is due again once the lease has ended; None if it is not due, or its tenant suspended.

        A source of a suspended tenant is due again after a while, so that it does not stand before others.
        """
        tenant = select(tenants.c.state).where(tenants.c.tenant_id == CURRENT_TENANT).scalar_subquery()
        active = tenant == "active"
        values = _CLAIMS.claimed(owner, lease_seconds)
        statement = (
            update(sources)
            .where(sources.c.id == source_id, _ACTIVE, _CLAIMS.is_free())
            .values({**values, "due_at": case((active, values["due_at"]), else_=lease_end(_POLL_SECONDS))})
            .returning(active)
        )
        with self._database.tenant(tenant_id) as connection:
            if not connection.execute(statement).scalar_one_or_none():
                return None
            return find_source(connection, source_id)

    def end_claims(self, owner: str) -> None:
        """Makes the sources of every tenant due that a worker has claimed: it has ended."""
        _CLAIMS.end_of(self._database, owner)

    def settle(
        self,
        source: DataSource,
        *,
        lag: SourceLag | None,
        due_seconds: float,
        state: SourceState | None = None,
        error: Fault | None = None,
    ) -> None:
        """Ends a claim without a round. `error`: what the source waits for. Changes nothing if the claim was lost, or
        the source changed, meanwhile.
        """
        values: dict[str, Any] = {
            **_CLAIMS.released(lease_end(due_seconds)),
            "failures": 0,
            "error": error,
        }
        if lag is not None:
            values["lag"] = lag
        if state is not None:
            values["state"] = state.value
        self._settle(source, values)

    def read_without_rows(
        self,
        source: DataSource,
        *,
        position: Position,
        items: Sequence[SourceItem],
        due_seconds: float,
        error: Fault,
    ) -> None:
        """Ends the claim of a source without a dataset, and records what it has read: no commit does. As `settle`,
        and changes nothing if the dataset was registered meanwhile.
        """
        values = {
            **_CLAIMS.released(lease_end(due_seconds)),
            "failures": 0,
            "error": error,
            "position": position,
        }
        with self._database.tenant(source.tenant_id) as connection:
            if _update_held(connection, source, values, sources.c.dataset_id.is_(None)):
                insert_items(connection, source.id, items, source.rounds)

    def failed(self, source: DataSource, fault: Fault) -> None:
        """Ends a claim with a failure: the source is tried again after a pause, or waits until it is resumed."""
        self._settle(source, {**failure_values(source.failures, fault), "planner": None})

    def reported(self, source: DataSource) -> None:
        """Records that the kind was called for the last commit."""
        self._settle(source, {"reported": source.rounds})

    def start(self, source: DataSource, new: NewJob, lag: SourceLag | None) -> Accepted | None:
        """Queues the round of a claimed source; None if one is unfinished, or the claim was lost. Raises NotFound,
        QuotaExceeded.
        """
        with self._database.tenant(source.tenant_id) as connection:
            share_datasets(connection, [new.dataset_id])
            current_source = lock_source(connection, source.id)
            if current_source.epoch != source.epoch or current_source.state is not SourceState.ACTIVE:
                return None
            connection.execute(
                update(sources)
                .where(sources.c.id == source.id)
                .values(**_CLAIMS.released(lease_end(_POLL_SECONDS)), **({} if lag is None else {"lag": lag}))
            )
            if unfinished_round(connection, current_source, _UNFINISHED) is not None:
                return None
            check_metered(
                connection, quotas_of(connection.execute(select(STORED_QUOTAS)).scalar_one()), METERED
            )
            return start_round(connection, current_source, new)

    def registered(self, source: DataSource, dataset_id: str) -> None:
        """The source has registered its dataset. Raises InvalidSource if it would close a cycle."""
        with self._database.tenant(source.tenant_id) as connection:
            config = source.definition.config
            refuse_cycle(
                connection, self._derivations, source_id=source.id, config=config, dataset_id=dataset_id
            )
            connection.execute(
                update(sources)
                .where(sources.c.id == source.id, sources.c.dataset_id.is_(None))
                .values(dataset_id=dataset_id)
            )

    def behind_seconds(self, tenant_id: str, dataset_id: str, position: int) -> float:
        """The age of the first change of a feed from a position on, in seconds; 0 if there is none."""
        age = seconds_since(
            behind_since(literal(dataset_id, Uuid(as_uuid=False)), literal(position, BigInteger))
        )
        with self._database.tenant(tenant_id) as connection:
            return float(connection.execute(select(age)).scalar_one())

    def get(self, tenant_id: str, source_id: str) -> DataSource:
        """Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return find_source(connection, source_id)

    def exists(self, tenant_id: str, source_id: str) -> bool:
        """Whether the source was not deleted."""
        with self._database.tenant(tenant_id) as connection:
            query = select(sources.c.id).where(sources.c.id == source_id)
            return connection.execute(query).one_or_none() is not None

    def holds(self, tenant_id: str, claim: Claim) -> bool:
        """Whether the claim of a round is valid."""
        with self._database.tenant(tenant_id) as connection:
            query = select(jobs.c.id).where(held_by([claim]))
            return connection.execute(query).one_or_none() is not None

    def decide(self, tenant_id: str, claim: Claim, request: WriteRequest) -> None:
        """Stores what a claimed round has turned out to do. Nothing happens if the claim is void."""
        with self._database.tenant(tenant_id) as connection:
            statement = update(jobs).where(held_by([claim])).values(request=request).returning(jobs.c.id)
            if connection.execute(statement).one_or_none() is not None:
                connection.execute(
                    update(instants)
                    .where(instants.c.job_id == claim.job_id)
                    .values(operation=request.operation.value)
                )

    def _settle(self, source: DataSource, values: dict[str, Any]) -> None:
        with self._database.tenant(source.tenant_id) as connection:
            _update_held(connection, source, values)


class ItemLedger:
    """The `Ledger` of a source in Postgres."""

    def __init__(self, database: Database, tenant_id: str, source_id: str) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._source_id = source_id

    def unread(self, items: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of these names and fingerprints that were not read."""
        query = select(source_items.c.name, source_items.c.fingerprint).where(
            source_items.c.source_id == self._source_id,
            any_of(source_items.c.name, sorted({name for name, _ in items})),
        )
        with self._database.tenant(self._tenant_id) as connection:
            read = {(row.name, row.fingerprint) for row in connection.execute(query)}
        return set(items) - read

    def checksums(self, names: Sequence[str]) -> dict[str, set[str]]:
        """The checksums under which items of these names were read."""
        query = select(source_items.c.name, source_items.c.checksum).where(
            source_items.c.source_id == self._source_id, any_of(source_items.c.name, list(names))
        )
        checksums: dict[str, set[str]] = {}
        with self._database.tenant(self._tenant_id) as connection:
            for row in connection.execute(query):
                checksums.setdefault(row.name, set()).add(row.checksum)
        return checksums


def insert_items(
    connection: Connection, source_id: str, items: Sequence[SourceItem], round_number: int
) -> None:
    """Records the items that a round has read."""
    rows = [
        {
            "source_id": source_id,
            "name": item.name,
            "fingerprint": item.fingerprint,
            "checksum": item.checksum,
            "size_bytes": item.size_bytes,
            "round": round_number,
            "error": item.error,
        }
        for item in items
    ]
    if rows:
        connection.execute(insert(source_items), rows)


def _update_held(
    connection: Connection, source: DataSource, values: dict[str, Any], *conditions: ColumnElement[bool]
) -> bool:
    """Changes a source that is claimed; false if the claim was lost, or the source changed, meanwhile."""
    held = (
        sources.c.id == source.id,
        _CLAIMS.is_held(source.epoch),
        sources.c.revision == source.revision,
    )
    statement = update(sources).where(*held, *conditions).values(values)
    return connection.execute(statement).rowcount > 0


def failure_values(failures: int, fault: Fault) -> dict[str, Any]:
    """What a failure changes of a source that has failed this number of times before."""
    values: dict[str, Any] = {"error": fault, "failures": failures + 1}
    if is_transient(fault.code):
        return {**values, "due_at": lease_end(retry_seconds(failures + 1))}
    return {**values, "state": SourceState.FAILED.value}
