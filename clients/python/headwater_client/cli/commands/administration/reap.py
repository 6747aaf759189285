"""`headwater reap`."""

from __future__ import annotations

from typing import Final

import msgspec

from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.printing.output import OUTPUT, Output
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import ReapReport

# Each request ends by itself after 30 s.
_WAIT_SECONDS: Final = 60.0
_REQUESTS_MAX: Final = 100
_NOTHING: Final = (
    "0 files are deleted: no deleted dataset has files, or a backup runs. Files that a dataset no longer needs are "
    "deleted without a reap, once they are older than HEADWATER_ORPHAN_GRACE_SECONDS."
)


def reap(*, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Delete the files of deleted datasets of all tenants now, with a key of an operator.

    Without it they are deleted an hour after their datasets.

    Example: `headwater reap`
    """
    files = 0
    with service.client() as client:
        for _ in range(_REQUESTS_MAX):
            answer = client.request("POST", "/storage/reaps", patience_seconds=_WAIT_SECONDS)
            done = msgspec.json.decode(answer.content, type=ReapReport)
            files += done.files
            if done.complete:
                text = f"{files:,} files are deleted." if files else _NOTHING
                output.done(text, ReapReport(files=files, complete=True))
                return
    raise CommandError(f"{files:,} files are deleted, and more are left: run it again", ExitCode.FAILED)
