"""The link with which a demo ends: it opens the console at what the demo has made."""

from __future__ import annotations

import msgspec

from headwater_client import Headwater
from headwater_client.models import SignInLink


def sign_in_link(client: Headwater, page: str) -> str:
    """A link that signs in to the console once, as the key of the client, and leads to a page, such as `/console`.

    Raises Problem.
    """
    link = msgspec.json.decode(client.request("POST", "/sign-in-links").content, type=SignInLink)
    return f"{link.url}&next={page}"
