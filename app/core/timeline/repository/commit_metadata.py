"""The metadata of the commits of a part of a feed, or of a range of versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, Column, ColumnElement, Connection, Select, bindparam, func, select

from app.core.timeline.tables import commits
from app.kernel.format.commit_metadata import CommitMetadata

_OF_DATASET: Final = commits.c.dataset_id == bindparam("dataset", type_=commits.c.dataset_id.type)


_OWN: Final = commits.alias("own")


def _listing(order: Column[Any], *conditions: ColumnElement[bool]) -> Select[Any]:
    """The commits with metadata, up to the first with which it has more bytes than `bytes_max`.

    `order`: a column of an index whose range the conditions state, so that other commits are not read.
    """
    # The sizes are added before any metadata is read.
    sizes = (
        select(
            commits.c.version,
            commits.c.committed_at,
            commits.c.first_offset,
            commits.c.next_offset,
            commits.c.metadata_bytes,
            func.sum(commits.c.metadata_bytes).over(order_by=order).label("total"),
        )
        .where(_OF_DATASET, commits.c.metadata_bytes.is_not(None), *conditions)
        .subquery("sizes")
    )
    metadata = (
        select(_OWN.c.metadata)
        .where(
            _OWN.c.dataset_id == bindparam("dataset", type_=commits.c.dataset_id.type),
            _OWN.c.version == sizes.c.version,
            # Either index finds the commit, whichever the planner takes.
            _OWN.c.next_offset == sizes.c.next_offset,
        )
        .scalar_subquery()
    )
    return (
        select(
            sizes.c.version,
            sizes.c.committed_at,
            sizes.c.first_offset,
            sizes.c.total,
            metadata.label("metadata"),
        )
        .where(sizes.c.total - sizes.c.metadata_bytes <= bindparam("bytes_max", type_=BigInteger()))
        .order_by(sizes.c.version)
    )


_SINCE: Final = bindparam("since", type_=BigInteger())
_UNTIL: Final = bindparam("until", type_=BigInteger())
OF_OFFSETS: Final = _listing(
    commits.c.next_offset,
    commits.c.next_offset > _SINCE,
    # Offsets grow with versions: the commit that ends there has the last change of the part.
    commits.c.next_offset
    <= select(func.min(commits.c.next_offset))
    .where(_OF_DATASET, commits.c.next_offset >= _UNTIL)
    .scalar_subquery(),
    commits.c.first_offset < commits.c.next_offset,
)
OF_VERSIONS: Final = _listing(commits.c.version, commits.c.version > _SINCE, commits.c.version <= _UNTIL)


class ListedCommits(NamedTuple):
    """The first commits with metadata of a part of a feed or of a range of versions, in order.

    `end`: the offset at which the next one starts; None if these are all.
    """

    commits: tuple[CommitMetadata, ...]
    end: int | None


def commits_of_changes(
    connection: Connection, dataset_id: str, since: int, until: int, *, bytes_max: int
) -> ListedCommits:
    """The commits with metadata that have changes at offsets [since, until).

    They have at most `bytes_max` bytes of metadata together, unless it is one commit.
    """
    values = {"dataset": dataset_id, "since": since, "until": until, "bytes_max": bytes_max}
    return _listed(connection, OF_OFFSETS, values)


def commits_of_versions(
    connection: Connection, dataset_id: str, begin: int, end: int, *, bytes_max: int
) -> ListedCommits:
    """The commits with metadata of the versions after `begin` and up to `end`, bounded as `commits_of_changes`."""
    values = {"dataset": dataset_id, "since": begin, "until": end, "bytes_max": bytes_max}
    return _listed(connection, OF_VERSIONS, values)


def _listed(connection: Connection, query: Select[Any], values: Mapping[str, Any]) -> ListedCommits:
    listed: list[CommitMetadata] = []
    for row in connection.execute(query, values):
        if listed and row.total > values["bytes_max"]:
            return ListedCommits(commits=tuple(listed), end=row.first_offset)
        listed.append(
            CommitMetadata(version=row.version, committed_at=row.committed_at, metadata=row.metadata)
        )
    return ListedCommits(commits=tuple(listed), end=None)
