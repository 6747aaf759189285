"""What a page of changes may still take."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from app.kernel.changelog.change_positions import count_since


@dataclass(kw_only=True, slots=True)
class PageBudget:
    """The changes, their bytes and the files that a page may still take.

    `cost`: of scans, in changes; None if it does not count, since all changes that are scanned are on the page. A
    budget may be overdrawn: a scan returns whole pairs, and at least one change.
    """

    changes: int
    size_bytes: int
    files: int
    cost: int | None

    @property
    def spent(self) -> bool:
        """Whether the page ends here."""
        limits = (self.changes, self.size_bytes, self.files, 1 if self.cost is None else self.cost)
        return min(limits) <= 0

    def take_changes(self, changes: pa.Table, start: int) -> None:
        """Takes the changes of a scan. One before the offset `start`, the first half of a pair, counts by its bytes."""
        self.changes -= count_since(changes, start)
        # Columns without rows have some bytes too.
        self.size_bytes -= changes.nbytes if changes.num_rows else 0

    def take_cost(self, cost: int) -> None:
        """Takes the cost of a scan."""
        if self.cost is not None:
            self.cost -= cost

    def fitting(self, changes: pa.Table) -> int:
        """The number of the first of all changes taken with which it is not overdrawn."""
        return int(changes.num_rows) + min(self.changes, 0)
