"""How far back a dataset is kept."""

from __future__ import annotations

from app.kernel.format.policies import HistoryPolicy


def beginning_of(policy: HistoryPolicy, *, head: int, latest_then: int) -> int:
    """The first version that the policy keeps. `latest_then`: the latest one `seconds` ago.

    A version is kept if it is one of the last `versions`, or was the latest at any time in the last `seconds`.
    """
    beginnings = []
    if policy.versions is not None:
        beginnings.append(head - policy.versions + 1)
    if policy.seconds is not None:
        beginnings.append(latest_then)
    return max(0, min(beginnings, default=0))
