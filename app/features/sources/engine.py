"""The interface of rounds to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.features.sources.ports import Fetched
from app.features.sources.tasks import FetchTask
from app.features.writes.engine import WriteEngine
from app.kernel.derivation.engine import Derivation


class RoundEngine(WriteEngine, Derivation, Protocol):
    """Fetches, decodes and transforms what a round reads."""

    def fetch(self, tasks: Sequence[FetchTask], tag: str) -> list[Fetched]:
        """One result per part of a source, in order.

        Raises SourceUnavailable, SourceFailed, MalformedBody, StorageFull, EngineStopped.
        """
        ...
