"""`headwater openapi`."""

import sys

from app.openapi import schema_json


def openapi() -> None:
    """Print the OpenAPI document of the service."""
    text = schema_json()
    sys.stdout.write(text.decode() if isinstance(text, bytes) else text)
