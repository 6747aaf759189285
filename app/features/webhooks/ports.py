"""The port of receivers: where the messages of a webhook go. There is one for each `ReceiverKind`.

A receiver has no state of a webhook: every call gets its definition, and what identifies the service.
"""

from __future__ import annotations

from typing import Protocol

from app.core.catalog.values import Dataset
from app.features.webhooks.retries import RetryRules
from app.features.webhooks.values import (
    ReceiverCredentials,
    Reply,
    Webhook,
    WebhookDefinition,
    WebhookMessage,
)
from app.kernel.changelog.change_selection import ChangeSelection


class Receiver(Protocol):
    """A kind of receiver."""

    def secret_of(self, secret: str | None) -> str:
        """The secret of a webhook that is registered with this one, or without. Raises InvalidWebhook."""
        ...

    def new_secret(self) -> str:
        """Another secret for a webhook, random. Raises InvalidWebhook if the service does not set the secret."""
        ...

    def check(
        self, dataset: Dataset | None, definition: WebhookDefinition, selection: ChangeSelection | None
    ) -> None:
        """Checks that messages of the webhook can be sent, as things are now.

        `dataset`: None for the alerts of all datasets. `selection`: the changes that it selects; None for events of
        partitions and for alerts. Raises InvalidWebhook, RestrictedGrant.
        """
        ...

    def check_redelivery(self) -> None:
        """Raises InvalidWebhook if a message that has ended cannot be sent again."""
        ...

    def test(self, webhook: Webhook, credentials: ReceiverCredentials) -> Reply:
        """Whether messages would arrive. A failure of any sort is a reply without success."""
        ...

    def send(self, webhook: Webhook, credentials: ReceiverCredentials, message: WebhookMessage) -> Reply:
        """One attempt at a message. A failure of any sort is a reply without success."""
        ...

    def retry_seconds(self, rules: RetryRules, attempts: int, reply: Reply) -> float | None:
        """When to try again, in seconds, after this many failures and one more, `reply`; None to give up."""
        ...
