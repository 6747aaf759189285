"""`headwater consumers …`: positions in feeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater_client.cli.arguments.names import ConsumerName, DatasetName
from headwater_client.cli.arguments.positions import position
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import FeedConsumer

_COLUMNS: Final[Sequence[TableColumn[FeedConsumer]]] = (
    TableColumn("NAME", lambda each: each.name),
    TableColumn("KIND", lambda each: each.kind),
    TableColumn("OFFSET", lambda each: each.offset),
    TableColumn("HEAD", lambda each: each.head),
    TableColumn("LAG", lambda each: None if each.lag is None else each.lag.changes),
    TableColumn("LAG SECONDS", lambda each: None if each.lag is None else round(each.lag.seconds)),
    TableColumn("MOVED", lambda each: each.moved_at),
    TableColumn("MEMBER", lambda each: None if each.lease is None else each.lease.member),
)


def list_consumers(
    dataset: DatasetName, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """List who follows the feed of a dataset, and how far behind they are.

    Example: `headwater consumers orders`
    """
    with service.client() as client:
        output.items(client.consumers(dataset), _COLUMNS)


def show(
    dataset: DatasetName, name: ConsumerName, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """Print a consumer.

    Example: `headwater consumers show orders billing`
    """
    with service.client() as client:
        output.item(client.get_consumer(dataset, name))


def create(
    dataset: DatasetName,
    name: ConsumerName,
    /,
    *,
    since: str = "earliest",
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Make a consumer.

    Example: `headwater consumers create orders billing --since now`

    Parameters
    ----------
    since
        An offset, earliest, now, snapshot, a time such as 2026-11-29, a length such as 10m, or a version such as v12.
    """
    chosen = position("--since", since)
    if "since" in chosen:
        chosen["offset"] = chosen.pop("since")
    with service.client() as client:
        made = client.create_consumer(dataset, name, **chosen)
    output.done(f"Consumer {made.name} is at {made.offset}.", made)


def reset(
    dataset: DatasetName,
    name: ConsumerName,
    to: str,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Move a consumer to another position, also to an earlier one: it reads again what comes after.

    Example: `headwater consumers reset orders billing earliest`

    Parameters
    ----------
    to
        An offset, earliest, now, a time such as 2026-11-29, a length such as 10m, or a version such as v12.
    """
    chosen = position("TO", to)
    if "since" in chosen:
        chosen["offset"] = chosen.pop("since")
    with service.client() as client:
        moved = client.commit(dataset, client.get_consumer(dataset, name), reset=True, **chosen)
    output.done(f"Consumer {moved.name} is at {moved.offset}.", moved)


def delete(dataset: DatasetName, name: ConsumerName, /, *, service: ServiceChoice = SERVICE) -> None:
    """Delete a consumer, which then protects no changes from expiry.

    Example: `headwater consumers delete orders billing`
    """
    with service.client() as client:
        client.delete_consumer(dataset, name)
    print(f"Consumer {name} is deleted.")
