"""`headwater openapi`."""

import sys

from app.process.openapi import schema_json
from app.process.providers import PROVIDERS
from app.process.routes import ROUTES


def openapi() -> None:
    """Print the OpenAPI document of the service."""
    sys.stdout.write(schema_json(ROUTES, PROVIDERS).decode())
