"""What happens to named versions in the commit transaction."""

from __future__ import annotations

from sqlalchemy import Connection

from app.core.timeline.values import NewCommit, Overtaken, Published
from app.features.versions.repository.named_versions import tag_batch


class VersionParticipant:
    """Named versions in commits."""

    def publishing(self, connection: Connection, commit: NewCommit) -> Overtaken | None:  # noqa: ARG002
        """Has no objection."""
        return None

    def published(self, connection: Connection, commit: NewCommit, publication: Published) -> None:
        """Tags the version if it has a batch, and its dataset has `services.batch_tags`."""
        if commit.batch_tags is not None:
            tag_batch(connection, commit.dataset_id, publication.version, commit.batch_tags)
