"""`headwater doctor`."""

import sys

from app.doctor import Examined, Verdict, examine
from app.settings import Settings


def doctor() -> None:
    """Check everything that the service needs, with the settings of the environment.

    Prints a line for each check: its verdict, its name and what was found. Exits with 1 if a check has failed, with 0
    if there are warnings only.
    """
    failures = 0
    for found in examine(Settings.from_environment(), Examined.DEPLOYMENT):
        print(f"{found.verdict.value:<8} {found.name:<19} {found.detail}", flush=True)
        failures += found.verdict is Verdict.FAILED
    if failures:
        sys.exit(1)
