"""`headwater webhooks …`: feeds that are sent to URLs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from headwater_client.cli.arguments.names import Count, Names, Texts, WebhookId
from headwater_client.cli.arguments.positions import position
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.cli.state_changes import change_state
from headwater_client.models import (
    ChangeForm,
    Delivery,
    DeliveryState,
    Webhook,
    WebhookAttempt,
    WebhookEvents,
)

_COLUMNS: Final[Sequence[TableColumn[Webhook]]] = (
    TableColumn("ID", lambda each: each.id),
    TableColumn("DATASET", lambda each: None if each.dataset is None else each.dataset.name),
    TableColumn("EVENTS", lambda each: each.events),
    TableColumn("URL", lambda each: each.url),
    TableColumn("STATE", lambda each: each.state),
    TableColumn("PAUSED", lambda each: each.paused_at),
    TableColumn("POSITION", lambda each: each.position),
    TableColumn("PENDING", lambda each: each.pending),
    TableColumn("FAILURES", lambda each: each.failures),
    TableColumn("ERROR", lambda each: None if each.error is None else str(each.error.get("detail"))),
)
_DELIVERIES: Final[Sequence[TableColumn[Delivery]]] = (
    TableColumn("ID", lambda each: each.id),
    TableColumn("FROM", lambda each: each.since),
    TableColumn("TO", lambda each: each.next_since),
    TableColumn("STATE", lambda each: each.state),
    TableColumn("ATTEMPTS", lambda each: each.attempts),
    TableColumn("STATUS", lambda each: each.status),
    TableColumn("CREATED", lambda each: each.created_at),
    TableColumn("ERROR", lambda each: each.error),
)

_ATTEMPTS: Final[Sequence[TableColumn[WebhookAttempt]]] = (
    TableColumn("AT", lambda each: each.at),
    TableColumn("MESSAGE", lambda each: each.delivery or "test"),
    TableColumn("STATUS", lambda each: each.status),
    TableColumn("MS", lambda each: round(each.seconds * 1_000)),
    TableColumn("ERROR", lambda each: each.error),
    TableColumn("ANSWER", lambda each: each.answer),
)


def list_webhooks(
    *,
    dataset: str | None = None,
    state: str | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List webhooks, the newest first.

    Example: `headwater webhooks --dataset orders`

    Parameters
    ----------
    dataset
        Only those of this dataset.
    state
        Only those in this state: active, paused.
    """
    with service.client() as client:
        output.items(client.webhooks(dataset, state=state), _COLUMNS)


def create(
    dataset: str,
    url: str | None = None,
    /,
    *,
    form: ChangeForm = "two_event",
    events: WebhookEvents = "changes",
    where: str | None = None,
    columns: Names = None,
    partitions: Texts = None,
    since: str = "now",
    description: str | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Register a webhook, and print the secret of its signatures, which is only shown now.

    Example: `headwater webhooks create orders https://example.com/orders --form upsert`

    Example: `headwater webhooks create https://example.com/alerts --events alerts`

    Parameters
    ----------
    dataset
        The name or the id of the dataset. Alerts of all datasets have none: then this is the URL.
    url
        Where messages are posted.
    form
        The form of changes.
    events
        What is sent: changes, events of partitions, or alerts about the dataset, or about all datasets.
    where
        Only changes whose row, before or after, matches this filter.
    columns
        Only these columns, such as id,state.
    partitions
        A glob of partition paths, such as day=2026-11-*. May be repeated.
    since
        An offset, earliest, now, snapshot, a time such as 2026-11-29, a length such as 10m, or a version such as v12.
    description
        What it is for.
    """
    with service.client() as client:
        made = client.create_webhook(
            None if url is None else dataset,
            url or dataset,
            events=events,
            delivery_format=form,
            columns=columns,
            where=where,
            partitions=partitions,
            description=description,
            **position("--since", since),
        )
    text = f"Webhook {made.id} is registered. Its secret, which is only shown now:"
    output.done(f"{text}\n{made.secret}", made)


def show(
    webhook: WebhookId,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print a webhook.

    Example: `headwater webhooks show 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    with service.client() as client:
        output.item(client.get_webhook(webhook))


def send_test(
    webhook: WebhookId,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Send a message of type webhook.test now, and print what the receiver answers.

    Example: `headwater webhooks test 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    with service.client() as client:
        output.item(client.try_webhook(webhook))


def pause(
    webhook: WebhookId,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Pause a webhook.

    Example: `headwater webhooks pause 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    change_state(service, output, lambda client: client.change_webhook(webhook, state="paused"))


def resume(
    webhook: WebhookId,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Resume a webhook.

    Example: `headwater webhooks resume 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    change_state(service, output, lambda client: client.change_webhook(webhook, state="active"))


def rotate(
    webhook: WebhookId,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Make another secret, and print it. For a day, messages are also signed with the previous one.

    Example: `headwater webhooks rotate 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    with service.client() as client:
        secret = client.rotate_webhook_secret(webhook)
    output.done(secret, {"secret": secret})


def deliveries(
    webhook: WebhookId,
    /,
    *,
    state: DeliveryState | None = None,
    limit: Count = 50,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List the messages of a webhook, the newest first.

    Example: `headwater webhooks deliveries 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2 --state dead`

    Parameters
    ----------
    state
        Only those in this state.
    limit
        How many messages, at most.
    """
    with service.client() as client:
        output.items(islice(client.deliveries(webhook, state=state), limit), _DELIVERIES)


def attempts(
    webhook: WebhookId,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List the latest ten attempts of a webhook, with what its receiver answered.

    Example: `headwater webhooks attempts 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    with service.client() as client:
        output.items(client.webhook_attempts(webhook), _ATTEMPTS)


def redeliver(
    webhook: WebhookId,
    delivery: str | None = None,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Send a message again, or all that were given up.

    Example: `headwater webhooks redeliver 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`

    Parameters
    ----------
    delivery
        The id of the message; by default all dead messages.
    """
    with service.client() as client:
        if delivery is None:
            number = client.redeliver_dead(webhook)
            output.done(f"{number} messages are sent again.", {"deliveries": number})
        else:
            again = client.redeliver(client.get_delivery(webhook, delivery))
            output.done(f"Message {again.id} is {again.state}.", again)


def delete(
    webhook: WebhookId,
    /,
    *,
    service: ServiceChoice = SERVICE,
) -> None:
    """Delete a webhook.

    Example: `headwater webhooks delete 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    with service.client() as client:
        client.delete_webhook(webhook)
    print(f"Webhook {webhook} is deleted.")
