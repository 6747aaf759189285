"""What the server adds to the command line `headwater`: `up`, `init`, `doctor`, `backup`, `server restore`, …

The command line itself is `headwater_client.cli`. `main` runs it with the commands of the server, however these are
installed.
"""

import sys

from clients.cli.commands import COMMANDS as OF_THE_SERVER
from headwater_client.cli.main import run
from headwater_client.cli.registry import COMMANDS, merged

__all__ = ["main"]


def main() -> None:
    """Runs the command of the arguments, and ends the process with its exit code."""
    sys.exit(run(sys.argv[1:], merged([COMMANDS, OF_THE_SERVER])))
