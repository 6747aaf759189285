"""What other rooms do in the commit transaction."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Connection

from app.core.timeline.values import NewCommit, Overtaken, Published


class CommitParticipant(Protocol):
    """Takes part in the commit transaction, under the lock of the head row.

    `TimelineStore` receives the participants and calls them in order, which is an order of locks: views, sources,
    consumers, partitions, versions.
    """

    def publishing(self, connection: Connection, commit: NewCommit) -> Overtaken | None:
        """Called once the commit is known not to conflict, also where it makes no version.

        Overtaken if another commit or a change of a schema came first for the participant: then nothing is published.
        """
        ...

    def published(self, connection: Connection, commit: NewCommit, publication: Published) -> None:
        """Called after the commit has made a version."""
        ...
