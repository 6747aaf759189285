"""Values of console. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime

import msgspec


class SignInLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that signs in once."""

    url: str
    """The address. The sign-in uses it up."""
    expires_at: datetime
    """When it ends without a visit."""
