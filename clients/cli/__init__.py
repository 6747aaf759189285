"""The command line: `headwater up`, `headwater init`, `headwater openapi`, `headwater demo …`."""

from clients.cli.main import main

__all__ = ["main"]
