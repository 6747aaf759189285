"""What happens to consumers in the commit transaction."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, bindparam, insert, literal, select

from app.core.consumers.repository.followers import is_followed, move_follower, wake_follower
from app.core.jobs.tables import outbox
from app.core.timeline.values import NewCommit, Overtaken, Published

_DATASET: Final = bindparam("dataset", type_=outbox.c.dataset_id.type)
# A part of each commit, made once.
_NOTIFY: Final = insert(outbox).from_select(
    ["topic", "dataset_id"],
    select(literal("follow", outbox.c.topic.type), _DATASET).where(is_followed(_DATASET)),
)


class ConsumerParticipant:
    """Consumers in commits."""

    def publishing(self, connection: Connection, commit: NewCommit) -> Overtaken | None:
        """Moves a view's positions in the feeds of its inputs; Overtaken if another commit has moved one before."""
        for each in sorted(commit.advances, key=lambda advance: (advance.dataset_id, advance.name)):
            if not move_follower(connection, each.dataset_id, each.name, each.since, each.next_since):
                return Overtaken(dataset_id=commit.dataset_id, since=each.since)
            wake_follower(connection, each.dataset_id, each.name, None)
        return None

    def published(self, connection: Connection, commit: NewCommit, publication: Published) -> None:
        """Posts a message for the followers of the feed, if there are any and the commit has changes."""
        if publication.first_offset == publication.next_offset:
            return
        connection.execute(_NOTIFY, {"dataset": commit.dataset_id})
