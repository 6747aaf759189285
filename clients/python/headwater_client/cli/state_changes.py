"""What `pause` and `resume` of exports, sources, views and webhooks do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from headwater_client.cli.printing.output import Output
from headwater_client.cli.service import ServiceChoice
from headwater_client.client import Headwater
from headwater_client.models import Export, Source, View, Webhook

Pausable: TypeAlias = Export | Source | View | Webhook


def change_state(service: ServiceChoice, output: Output, change: Callable[[Headwater], Pausable]) -> None:
    """Changes the state of a resource, and prints what it is now."""
    with service.client() as client:
        resource = change(client)
    name = resource.name if isinstance(resource, Source | View) else resource.id
    output.done(f"{type(resource).__name__} {name} is {resource.state}.", resource)
