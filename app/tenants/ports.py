"""What the use cases need of the world. Every port has one test suite, run on each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from typing import Protocol

from app.tenants.values import Principal


class Tenants(Protocol):
    """Credentials."""

    def authenticate(self, api_key: str) -> Principal | None:
        """The principal of a live key; None for any other text."""
        ...
