"""Refused writes name the commit that they lost to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.core.timeline.ports import Winners
from app.core.timeline.values import Winner
from app.kernel.commit.conflict import check_version
from app.kernel.format.errors import CommitConflict, DataExists, HeadwaterError


@dataclass(frozen=True, kw_only=True, slots=True)
class NameWinner:
    """Adds the facts about the winning commit to errors."""

    timeline: Winners

    def check_version(self, tenant_id: str, dataset_id: str, expected_version: int | None, head: int) -> None:
        """Raises CommitConflict, which names the latest commit, if the write expects another version than `head`."""
        try:
            check_version(dataset_id, expected_version, head)
        except CommitConflict as error:
            raise self.named(tenant_id, dataset_id, error) from None

    def named(self, tenant_id: str, dataset_id: str, error: HeadwaterError) -> HeadwaterError:
        """The error with `winner`, `winner_version`, `actor` and `actor_name`, and with `file_groups` if it has none.

        These are null if the dataset has no such commit. An error that is no conflict is returned as it is.
        """
        match error:
            case DataExists():
                winner = self.timeline.winner_with_rows(tenant_id, dataset_id, error.facts["version"])
            case CommitConflict(facts={"winner": str(instant_id)}):
                winner = self.timeline.winner_of_instant(tenant_id, dataset_id, instant_id)
            case CommitConflict(facts={"expected_version": int(expected_version)}):
                winner = self.timeline.winner_since(tenant_id, dataset_id, expected_version)
            case _:
                return error
        return type(error)(error.detail, **{"dataset_id": dataset_id, **_facts(winner), **error.facts})


def _facts(winner: Winner | None) -> dict[str, Any]:
    if winner is None:
        return {
            "winner": None,
            "winner_version": None,
            "actor": None,
            "actor_name": None,
            "file_groups": [],
            "file_group_count": 0,
        }
    return {
        "winner": winner.instant_id,
        "winner_version": winner.version,
        "actor": winner.actor,
        "actor_name": winner.actor_name,
        "file_groups": list(winner.file_groups),
        "file_group_count": winner.file_group_count,
    }
