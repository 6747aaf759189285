"""Savepoints and tags in Postgres: versions of a dataset that are kept under a name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.access.errors import NotFound
from app.core.jobs.kinds.named_version import NamedVersion, SavepointTask, TagTask, VersionKind
from app.core.jobs.repository.job_ends import succeed_task
from app.core.jobs.repository.job_locks import held_by
from app.core.jobs.tables import instants, jobs
from app.core.jobs.values import Claim
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.kept_versions import NAME_LIVES, check_kept, share_history_at_head
from app.core.timeline.tables import commits, named_versions
from app.core.timeline.values import NewCommit, Overtaken, Published
from app.features.versions.errors import NameTaken
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.identifiers import new_instant_id
from app.kernel.format.instant import Action, InstantState, RowCounts
from app.kernel.paging import Page, PageTokens

# Of the names of tags of batches; periods have no such names.
_BATCH: Final = "batch-"
_COLUMNS: Final = tuple(named_versions.c[name] for name in NamedVersion.__struct_fields__)


class NamedVersionStore:
    """Versions with names in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def name(self, tenant_id: str, dataset_id: str, claim: Claim, task: SavepointTask | TagTask) -> bool:
        """Names the version (None: the head) and ends the claimed job and its instant, in one transaction.

        False if the claim is void. Raises NameTaken, VersionExpired, NotFound (dataset gone).
        """
        with self._database.tenant(tenant_id) as connection:
            head = share_history_at_head(connection, dataset_id)
            version = head if task.version is None else task.version
            check_kept(connection, dataset_id, version)
            named_version = _insert(connection, dataset_id, claim, task, version)
            result = msgspec.to_builtins(named_version)
            if not succeed_task(connection, held_by([claim]), result):
                connection.rollback()
                return False
            connection.execute(
                update(instants).where(instants.c.job_id == claim.job_id).values(version=version or None)
            )
        return True

    def get(self, tenant_id: str, dataset_id: str, name: str) -> NamedVersion:
        """Raises NotFound."""
        named_version = None
        if "\0" not in name:
            with self._database.tenant(tenant_id) as connection:
                named_version = _find(connection, dataset_id, name)
        if named_version is None:
            raise NotFound(f"the dataset has no savepoint or tag named {name!r}")
        return named_version

    def list(
        self,
        tenant_id: str,
        dataset_id: str,
        kind: VersionKind | None = None,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """NamedVersion items by name, of one kind or all. Raises InvalidRequest for an unknown page token."""
        tokens = PageTokens("named versions", dataset_id, kind)
        conditions: list[ColumnElement[bool]] = [named_versions.c.dataset_id == dataset_id, NAME_LIVES]
        if kind is not None:
            conditions.append(named_versions.c.kind == kind.value)
        if page_token is not None:
            conditions.append(named_versions.c.name > tokens.position(page_token))
        query = select(*_COLUMNS).where(*conditions).order_by(named_versions.c.name).limit(page_size + 1)
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query).all()
        return tokens.page(rows, page_size, lambda row: row.name, _named_version)

    def add_automatic(self, tenant_id: str, dataset_id: str, name: str, before: datetime) -> int | None:
        """Tags the last version that was committed before the moment; returns it.

        None if there is no such version, it is no longer kept, or the name is taken. Raises NotFound.
        """
        query = (
            select(commits.c.version)
            .where(commits.c.dataset_id == dataset_id, commits.c.committed_at < before)
            .order_by(commits.c.committed_at.desc())
            .limit(1)
        )
        with self._database.tenant(tenant_id) as connection:
            # With this lock no commit is in progress, so none with an earlier time can follow.
            share_history_at_head(connection, dataset_id)
            version = connection.execute(query).scalar_one_or_none()
            if version is None or not _is_kept(connection, dataset_id, version):
                return None
            return version if _tag(connection, dataset_id, name, version) else None

    def automatic(self, tenant_id: str, dataset_id: str) -> Sequence[str]:
        """The names of the tags that the service has made by itself."""
        query = select(named_versions.c.name).where(
            named_versions.c.dataset_id == dataset_id,
            named_versions.c.kind == VersionKind.TAG.value,
            named_versions.c.automatic,
        )
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).scalars().all()

    def remove(self, tenant_id: str, dataset_id: str, names: Sequence[str]) -> int:
        """Removes names, whose versions may then be cleaned. Returns how many were removed."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(
                delete(named_versions).where(
                    named_versions.c.dataset_id == dataset_id, any_of(named_versions.c.name, names)
                )
            ).rowcount


class VersionParticipant:
    """Named versions in commits."""

    def publishing(self, connection: Connection, commit: NewCommit) -> Overtaken | None:  # noqa: ARG002
        """Has no objection."""
        return None

    def published(self, connection: Connection, commit: NewCommit, publication: Published) -> None:
        """Tags the version if it has a batch, and its dataset has `services.batch_tags`."""
        if commit.batch_tags is not None:
            _tag_batch(connection, commit.dataset_id, publication.version, commit.batch_tags)


def _insert(
    connection: Connection, dataset_id: str, claim: Claim, task: SavepointTask | TagTask, version: int
) -> NamedVersion:
    """Raises NameTaken."""
    in_dataset = named_versions.c.dataset_id == dataset_id
    connection.execute(
        delete(named_versions).where(in_dataset, named_versions.c.name == task.name, ~NAME_LIVES)
    )
    expires_at = (
        None if task.keep_seconds is None else func.clock_timestamp() + timedelta(seconds=task.keep_seconds)
    )
    row = connection.execute(
        insert_unless(named_versions)
        .values(
            dataset_id=dataset_id,
            name=task.name,
            kind=VersionKind(task.kind).value,
            version=version,
            # A job without an actor was started by the service.
            automatic=select(jobs.c.actor.is_(None)).where(jobs.c.id == claim.job_id).scalar_subquery(),
            expires_at=expires_at,
        )
        .on_conflict_do_nothing()
        .returning(*_COLUMNS)
    ).one_or_none()
    if row is None:
        raise taken(_find(connection, dataset_id, task.name), task.name)
    return _named_version(row)


def _tag_batch(connection: Connection, dataset_id: str, version: int, keep: int) -> None:
    """Tags the version that was just committed, and removes all but the latest `keep` tags of this kind."""
    _tag(connection, dataset_id, f"{_BATCH}{version}", version)
    ours = (
        named_versions.c.dataset_id == dataset_id,
        named_versions.c.kind == VersionKind.TAG.value,
        named_versions.c.automatic,
        named_versions.c.name.startswith(_BATCH),
    )
    latest_surplus = (
        select(named_versions.c.version)
        .where(*ours)
        .order_by(named_versions.c.version.desc())
        .offset(keep)
        .limit(1)
    )
    connection.execute(
        delete(named_versions).where(*ours, named_versions.c.version <= latest_surplus.scalar_subquery())
    )


def _is_kept(connection: Connection, dataset_id: str, version: int) -> bool:
    try:
        check_kept(connection, dataset_id, version)
    except VersionExpired:
        return False
    return True


def _tag(connection: Connection, dataset_id: str, name: str, version: int) -> bool:
    """An automatic tag and its instant, which has no job; false if the name is taken."""
    row = connection.execute(
        insert_unless(named_versions)
        .values(dataset_id=dataset_id, name=name, kind=VersionKind.TAG.value, version=version, automatic=True)
        .on_conflict_do_nothing()
        .returning(named_versions.c.name)
    ).one_or_none()
    if row is None:
        return False
    connection.execute(
        insert(instants).values(
            dataset_id=dataset_id,
            id=new_instant_id(),
            action=Action.TAG.value,
            operation=Action.TAG.value,
            state=InstantState.COMPLETED.value,
            version=version,
            completed_at=func.clock_timestamp(),
            counts=RowCounts(),
        )
    )
    return True


def taken(named_version: NamedVersion | None, name: str) -> NameTaken:
    """Why a name cannot be given."""
    kind = "version" if named_version is None else named_version.kind.value
    return NameTaken(
        f"there is a {kind} named {name!r} already: savepoints and tags share their names",
        name=name,
        version=None if named_version is None else named_version.version,
        kind=None if named_version is None else named_version.kind.value,
    )


def _find(connection: Connection, dataset_id: str, name: str) -> NamedVersion | None:
    row = connection.execute(
        select(*_COLUMNS).where(
            named_versions.c.dataset_id == dataset_id, named_versions.c.name == name, NAME_LIVES
        )
    ).one_or_none()
    return None if row is None else _named_version(row)


def _named_version(row: Any) -> NamedVersion:
    return NamedVersion(**row._asdict() | {"kind": VersionKind(row.kind)})
