"""The interface of rounds to Spark."""

from __future__ import annotations

from typing import Protocol

from app.features.writes.engine import WriteEngine
from app.kernel.derivation.engine import Derivation


class RoundEngine(WriteEngine, Derivation, Protocol):
    """Fetches, decodes and transforms what a round reads."""
