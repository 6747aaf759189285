"""The error of bad records."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class AlreadyRedriven(HeadwaterError):
    """Other requests have already redriven or discarded these quarantined records. Fact: `records`, some of them."""

    code = "already-redriven"
    title = "Records were already redriven"
