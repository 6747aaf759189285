"""How many generated examples a test tries: CI a share, `make security` all."""

from __future__ import annotations

import os


def examples(share: int) -> int:
    """`SECURITY_EXAMPLES`, or the share of CI."""
    return int(os.environ.get("SECURITY_EXAMPLES", share))
