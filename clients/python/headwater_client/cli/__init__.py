"""The command line `headwater`: a module for each group of commands in `commands`, and what they share.

`registry` has the commands by name, `service` the connection that they use, `output` the forms in which they print.
Other distributions add commands by entry points of the group `headwater.commands`. Needs the extra `cli`.
"""

from __future__ import annotations

import importlib
import sys

from headwater_client.arrow import MissingPackage, required


def main() -> None:
    """Runs the command of the arguments, and ends the process with its exit code."""
    try:
        for package in ("cyclopts", "rich"):
            required(package, extra="cli")
    except MissingPackage as error:
        sys.exit(f"headwater: {error}")
    sys.exit(importlib.import_module("headwater_client.cli.main").run(sys.argv[1:]))
