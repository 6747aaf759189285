"""`headwater openapi`."""

import sys

from app.process.api import PROVIDERS, ROUTES
from app.process.openapi import schema_json


def openapi() -> None:
    """Print the OpenAPI document of the service."""
    sys.stdout.write(schema_json(ROUTES, PROVIDERS).decode())
