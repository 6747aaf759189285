"""The log of a process of the service, on standard error."""

from __future__ import annotations

import logging


def configure_logs(name: str = "") -> None:
    """Logs one line per event, with its time. `name`: of the process, with a space behind it, unless it is empty."""
    # What the lines do not show is not collected, as the documentation of `logging` proposes.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.basicConfig(
        level=logging.INFO, format=f"%(asctime)s %(levelname)s {name}%(name)s %(message)s", force=True
    )
