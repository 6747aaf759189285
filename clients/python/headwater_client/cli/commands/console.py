"""`headwater console`."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import msgspec
from cyclopts import Parameter

from headwater_client.cli.printing.output import OUTPUT, Output
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import SignInLink


def console(
    *,
    opens: Annotated[bool, Parameter(name="--open", negative="")] = False,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print a link that signs in to the console once, as the key in use. It lasts ten minutes.

    Example: `headwater console`

    Parameters
    ----------
    opens
        Open the link in the browser of this machine.
    """
    with service.client() as client:
        answer = client.request("POST", "/sign-in-links")
    link = msgspec.json.decode(answer.content, type=SignInLink)
    output.item({"url": link.url, "expires_at": link.expires_at})
    if opens:
        webbrowser.open(link.url)
