"""The result of a check."""

from __future__ import annotations

from enum import Enum

import msgspec


class Verdict(str, Enum):
    """What a check has found. FAILED: the service does not work. WARNING: it works, with a fault or a risk."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. `detail`: what was found, and what to do about it."""

    name: str
    verdict: Verdict
    detail: str


def ok(name: str, detail: str) -> Diagnosis:
    """The check passed."""
    return Diagnosis(name=name, verdict=Verdict.OK, detail=detail)


def warning(name: str, detail: str) -> Diagnosis:
    """The service works, with a fault or a risk."""
    return Diagnosis(name=name, verdict=Verdict.WARNING, detail=detail)


def failed(name: str, detail: str) -> Diagnosis:
    """The service does not work like this."""
    return Diagnosis(name=name, verdict=Verdict.FAILED, detail=detail)
