"""What happens to partitions in the commit transaction."""

from __future__ import annotations

from sqlalchemy import Connection

from app.core.timeline.values import NewCommit, Overtaken, Published
from app.features.partitions.repository.marks import end_changed


class PartitionParticipant:
    """Partitions in commits."""

    def publishing(self, connection: Connection, commit: NewCommit) -> Overtaken | None:  # noqa: ARG002
        """Has no objection."""
        return None

    def published(self, connection: Connection, commit: NewCommit, publication: Published) -> None:  # noqa: ARG002
        """Marks the partitions that the commit changed as done, if its write requests that."""
        if commit.ends_partitions:
            end_changed(connection, commit.dataset_id)
