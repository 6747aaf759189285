"""`headwater openapi`."""

import sys

from app.openapi import schema_json
from app.providers import PROVIDERS
from app.routes import ROUTES


def openapi() -> None:
    """Print the OpenAPI document of the service."""
    sys.stdout.write(schema_json(ROUTES, PROVIDERS).decode())
