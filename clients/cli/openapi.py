"""`headwater openapi`."""

import sys

from app.openapi import schema_json


def openapi() -> None:
    """Print the OpenAPI schema that the service serves."""
    text = schema_json()
    sys.stdout.write(text.decode() if isinstance(text, bytes) else text)
