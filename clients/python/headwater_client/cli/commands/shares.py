"""`headwater shares …`: datasets for readers outside of the tenant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater_client.cli.arguments.names import Ahead, ShareName
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import Recipient, Share


def _reach(recipient: Recipient) -> str:
    return "*" if recipient.grants is None else ",".join(grant.dataset for grant in recipient.grants)


_COLUMNS: Final[Sequence[TableColumn[Share]]] = (
    TableColumn("NAME", lambda each: each.name),
    TableColumn("ID", lambda each: each.id),
    TableColumn("DATASETS", lambda each: ",".join(entry.name for entry in each.datasets)),
    TableColumn("CREATED", lambda each: each.created_at),
)
_RECIPIENTS: Final[Sequence[TableColumn[Recipient]]] = (
    TableColumn("NAME", lambda each: each.name),
    TableColumn("ID", lambda each: each.id),
    TableColumn("DATASETS", _reach),
    TableColumn("EXPIRES", lambda each: each.expires_at),
    TableColumn("LAST USED", lambda each: each.last_used_at),
)


def list_shares(
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List shares by name.

    Example: `headwater shares`
    """
    with service.client() as client:
        output.items(client.shares(), _COLUMNS)


def create(
    name: str,
    /,
    *datasets: str,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Make a share of datasets.

    Example: `headwater shares create partners orders`

    Parameters
    ----------
    name
        The name.
    datasets
        The names of the datasets.
    """
    with service.client() as client:
        made = client.create_share(name, datasets)
    output.done(f"Share {made.name} has the id {made.id}.", made)


def show(
    share: ShareName,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print a share.

    Example: `headwater shares show partners`
    """
    with service.client() as client:
        output.item(client.get_share(share))


def delete(
    share: ShareName,
    /,
    *,
    service: ServiceChoice = SERVICE,
) -> None:
    """Delete a share and its recipients, whose tokens end at once.

    Example: `headwater shares delete partners`
    """
    with service.client() as client:
        client.delete_share(share)
    print(f"Share {share} is deleted.")


def recipients(
    share: ShareName,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List the recipients of a share by name.

    Example: `headwater shares recipients partners`
    """
    with service.client() as client:
        output.items(client.recipients(share), _RECIPIENTS)


def add_recipient(
    share: ShareName,
    name: str,
    /,
    *,
    expires_at: Ahead = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Make a recipient, and print the profile with its token, which is only shown now.

    Example: `headwater shares add-recipient partners acme --expires-at 90d`

    Parameters
    ----------
    name
        The name of the recipient.
    expires_at
        When its tokens end, such as 2027-01-01 (UTC) or 90d (from now); by default never.
    """
    with service.client() as client:
        made = client.create_recipient(share, name, expires_at=expires_at)
    output.item(made)


def rotate(
    share: ShareName,
    recipient: str,
    /,
    *,
    overlap_seconds: int = 86_400,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Make another token of a recipient, and print the profile, which is only shown now.

    Example: `headwater shares rotate partners acme`

    Parameters
    ----------
    recipient
        The id or the name of the recipient.
    overlap_seconds
        How long the token before stays valid; 0 ends it at once.
    """
    with service.client() as client:
        output.item(client.rotate_recipient_token(share, recipient, overlap_seconds=overlap_seconds))


def remove_recipient(
    share: ShareName,
    recipient: str,
    /,
    *,
    service: ServiceChoice = SERVICE,
) -> None:
    """Delete a recipient, whose tokens and links end at once.

    Example: `headwater shares remove-recipient partners acme`

    Parameters
    ----------
    recipient
        The id or the name of the recipient.
    """
    with service.client() as client:
        client.delete_recipient(share, recipient)
    print(f"Recipient {recipient} is deleted.")
