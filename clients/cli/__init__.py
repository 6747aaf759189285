"""The command line: `headwater up`, `headwater init`, `headwater doctor`, `headwater openapi`, `headwater models`,
`headwater backup`, `headwater restore`, `headwater verify`, `headwater tenants …`, `headwater keys …`,
`headwater audit`, `headwater usage`, `headwater export`, `headwater demo …`.
"""

from clients.cli.main import main

__all__ = ["main"]
