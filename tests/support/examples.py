"""How many generated examples a test tries: CI a share, `make security` all."""

from __future__ import annotations

import os

from tests.support.shares import VARIABLE


def examples(share: int) -> int:
    """`SECURITY_EXAMPLES`, or the share of CI."""
    return int(os.environ.get("SECURITY_EXAMPLES", share))


def a_third_of(number: int) -> int:
    """How many examples a test generates: all that it should where `SHARES` is `long`, a third of them in CI."""
    return number if os.environ.get(VARIABLE) == "long" else -(-number // 3)
