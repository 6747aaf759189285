"""What happens to consumers in the commit transaction."""

from __future__ import annotations

from sqlalchemy import Connection, insert, literal, select

from app.consumers.repository.followers import is_followed, move_follower, wake_follower
from app.jobs.tables import outbox
from app.timeline.values import NewCommit, Overtaken, Published


class ConsumerParticipant:
    """Consumers in commits."""

    def publishing(self, connection: Connection, commit: NewCommit) -> Overtaken | None:
        """Moves a view's positions in the feeds of its inputs; Overtaken if another commit has moved one before."""
        for each in sorted(commit.advances, key=lambda advance: (advance.dataset_id, advance.name)):
            if not move_follower(connection, each.dataset_id, each.name, each.since, each.next_since):
                return Overtaken(dataset_id=commit.dataset_id, since=each.since)
            wake_follower(connection, each.dataset_id, each.name, None)
        return None

    def published(self, connection: Connection, commit: NewCommit, published: Published) -> None:
        """Posts a message for the followers of the feed, if there are any and the commit has changes."""
        if published.first_offset == published.next_offset:
            return
        dataset_id = literal(commit.dataset_id, outbox.c.dataset_id.type)
        message = select(literal("follow", outbox.c.topic.type), dataset_id).where(is_followed(dataset_id))
        connection.execute(insert(outbox).from_select(["topic", "dataset_id"], message))
