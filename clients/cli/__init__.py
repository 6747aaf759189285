"""The command line: `headwater up`, `headwater init`, `headwater openapi`, `headwater models`,
`headwater tenants …`, `headwater keys …`, `headwater audit`, `headwater usage`, `headwater export`, `headwater demo …`.
"""

from clients.cli.main import main

__all__ = ["main"]
