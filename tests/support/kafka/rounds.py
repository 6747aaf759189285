"""Rounds of a source that reads a topic, without the service around it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.features.sources.kinds.kafka import Kafka
from app.features.sources.output import FetchOutput
from app.features.sources.ports import Place, Position, RoundLimits, RoundPlan, SourceEnvironment
from app.infra.files.storage import LocalStorage

LOCAL = SourceEnvironment(allow=("127.0.0.0/8",), plain_http=True)
_LIMITS = RoundLimits()


class NoLedger:
    """The items of a kind that has none."""

    def unread(self, items: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        return list(items)

    def checksums(self, names: Sequence[str]) -> dict[str, set[str]]:
        return {}


@dataclass(kw_only=True)
class Rounds:
    """Plans and fetches rounds one after another, as the service does, and keeps what was read."""

    folder: Path
    config: dict[str, Any]
    position: Position = field(default_factory=dict)
    records: list[Any] = field(default_factory=list)
    rejected: int = 0
    environment: SourceEnvironment = LOCAL
    quarantine: bool = False

    def __post_init__(self) -> None:
        self.kind = Kafka()
        self.place = Place(
            tenant_id="t",
            source_id="s",
            config=self.kind.checked(self.config, self.environment),
            environment=self.environment,
        )

    def plan(self, limits: RoundLimits = _LIMITS) -> RoundPlan | None:
        """What the next round reads."""
        return self.kind.plan(self.place, self.position, limits, NoLedger())

    def round(self, limits: RoundLimits = _LIMITS) -> RoundPlan | None:
        """One round; None if there is nothing to read."""
        plan = self.plan(limits)
        if plan is None:
            return None
        position = dict(plan.position)
        for part in plan.parts:
            name = f"part-{uuid.uuid4().hex}"
            quarantine = f"{name}-bad" if self.quarantine else None
            with FetchOutput(LocalStorage(self.folder), name, quarantine) as output:
                read = self.kind.fetch(self.place, part, limits, output)
            fetched = output.fetched(read)
            position |= fetched.position
            for body in fetched.bodies:
                self.records += map(json.loads, (self.folder / body.raw.path).read_bytes().splitlines())
            self.rejected += sum(file.row_count for file in fetched.quarantine_files)
        self.position = position
        return plan

    def rounds(self, limits: RoundLimits = _LIMITS) -> int:
        """Rounds until there is nothing to read. Returns their number."""
        return sum(1 for _ in iter(lambda: self.round(limits), None))
