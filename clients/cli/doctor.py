"""`headwater doctor`."""

import os
import sys
from pathlib import Path

from app.infra.runtime.data_directory import DataDirectory, DataDirectoryError
from app.process.doctor import Examined, Verdict, examine
from clients.cli.settings import settings_of
from headwater_client.cli.failure import CommandError, ExitCode


def doctor(*, data: Path | None = None) -> None:
    """Check everything that the service needs, with the settings of the environment.

    Prints a line for each check: its verdict, its name and what was found. Exits with 1 if a check has failed, with 0
    if there are warnings only.


    Parameters
    ----------
    data
        The data folder of a running `headwater up`, whose embedded servers are checked.
    """
    try:
        own = {} if data is None else DataDirectory(data).settings()
    except DataDirectoryError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error
    failures = 0
    for found in examine(settings_of({**os.environ, **own}), Examined.DEPLOYMENT):
        print(f"{found.verdict.value:<8} {found.name:<19} {found.detail}", flush=True)
        failures += found.verdict is Verdict.FAILED
    if failures:
        sys.exit(1)
