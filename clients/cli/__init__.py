"""The command line: `headwater up`, `headwater init`, `headwater openapi`, `headwater models`,
`headwater tenants …`, `headwater keys …`, `headwater demo …`.
"""

from clients.cli.main import main

__all__ = ["main"]
