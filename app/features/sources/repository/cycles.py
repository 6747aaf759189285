"""Cycles of datasets: a source or a view writes what another one reads, and so on, back to the first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection, and_, or_, select, text

from app.core.catalog.repository.participants import Derivations
from app.core.catalog.tables import datasets
from app.features.sources.tables import sources
from app.features.sources.values import refused_source
from app.infra.db.any_of import any_of
from app.infra.db.columns import CURRENT_TENANT

# Edges of a tenant are added one after another: two sources could make a cycle that neither of them sees.
_LOCK: Final = text(f"SELECT pg_advisory_xact_lock(hashtextextended('cycles ' || {CURRENT_TENANT}, 0))")


def refuse_cycle(
    connection: Connection,
    derivations: Derivations,
    *,
    source_id: str,
    config: dict[str, Any],
    dataset_id: str | None,
) -> None:
    """Raises InvalidSource, with the datasets of the cycle, if the source would close one.

    A source that reads no dataset, or has none to write to yet, closes none. The transaction is the one that stores
    the source, or its dataset.
    """
    read = config.get("dataset_id")
    if read is None or dataset_id is None:
        return
    connection.execute(_LOCK)
    path = _path(dataset_edges(connection, derivations, without=source_id), dataset_id, read)
    if path is None:
        return
    query = select(datasets.c.id, datasets.c.name).where(any_of(datasets.c.id, path))
    names = {row.id: row.name for row in connection.execute(query)}
    cycle = " → ".join(names[each] for each in [read, *path])
    detail = f"the source would close a cycle, in which each change is written again without end: {cycle}"
    raise refused_source("/config/dataset", detail)


def dataset_edges(
    connection: Connection, derivations: Derivations, *, without: str | None = None
) -> list[tuple[str, str]]:
    """Datasets that are read, and those that are written with it, by id: of all sources but one, and of views."""
    # A source that registers its dataset has the name only.
    by_name = and_(
        sources.c.dataset_id.is_(None),
        datasets.c.name == sources.c.dataset_name,
        datasets.c.deleted_at.is_(None),
    )
    query = select(sources.c.definition, datasets.c.id).join(
        datasets, or_(datasets.c.id == sources.c.dataset_id, by_name)
    )
    if without is not None:
        query = query.where(sources.c.id != without)
    pairs = [(row.definition.config.get("dataset_id"), row.id) for row in connection.execute(query)]
    return [*((read, target) for read, target in pairs if read), *derivations.pairs(connection)]


def _path(edges: Iterable[tuple[str, str]], start: str, goal: str) -> list[str] | None:
    """The datasets on the shortest way from one to another, both included; None if there is no way."""
    following: dict[str, list[str]] = {}
    for read, target in edges:
        following.setdefault(read, []).append(target)
    before: dict[str, str | None] = {start: None}
    waiting = deque([start])
    while waiting and goal not in before:
        place = waiting.popleft()
        for target in following.get(place, ()):
            if target not in before:
                before[target] = place
                waiting.append(target)
    if goal not in before:
        return None
    path: list[str] = []
    at: str | None = goal
    while at is not None:
        path.append(at)
        at = before[at]
    return path[::-1]
