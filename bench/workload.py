"""What `bench.write` has every system do: the same writes of the same rows, from the same files.

A run loads tables by `insert`, then by `bulk_insert`. It reads the last one, upserts into it, reads it again, and
deletes from it. Rows and keys follow from the number of a step, so that each system, in whichever process, is handed
the same data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from bench.trips import trips, write_parquet

INSERT: Final = "insert"
BULK_INSERT: Final = "bulk_insert"
_LOADS: Final = (INSERT, BULK_INSERT)
_SAMPLE_ROWS: Final = 100_000


FILTER: Final = "city = 'oslo' AND fare < 1"
"""One row in a thousand, spread over all files. The text means the same in every system."""
READS: Final = {"read all": None, "read filtered": FILTER}
"""The condition of each read."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One write. `run` counts the repetitions of a case from 0, `ts` makes its values differ from all before.

    An upsert takes `rows` rows, of which `new` are not in the table yet, from number `first_new` on; a delete takes
    those that `where` holds for.
    """

    case: str
    run: int
    ts: int = 0
    rows: int = 0
    new: int = 0
    first_new: int = 0
    where: str | None = None

    @property
    def changes(self) -> int | None:
        """Change rows of it in a full feed: two of an updated row. None if only the table knows."""
        if self.where is not None:
            return None
        return self.rows if self.case in _LOADS else 2 * self.rows - self.new


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The size of everything. `half_new`: half the rows of an upsert are new instead of none."""

    rows: int
    buckets: int
    small_upsert: int
    repeat: int
    loads: int
    half_new: bool

    def loading(self) -> list[Step]:
        """The whole table into an empty one, each time a table of its own."""
        return [Step(case=case, run=run, rows=self.rows) for case in _LOADS for run in range(self.loads)]

    def upserts(self) -> list[Step]:
        """A hundred rows, a fixed number, 1 % and 10 % of them; every key equally likely."""
        steps: list[Step] = []
        head = self.rows
        # The small ones first: a system that leaves replaced rows for later is slower after large ones.
        cases = (
            ("upsert 100", min(100, self.rows)),
            (f"upsert {self.small_upsert:,}", self.small_upsert),
            ("upsert 1 %", self.rows // 100),
            ("upsert 10 %", self.rows // 10),
        )
        for case, rows in cases:
            for run in range(self.repeat):
                new = rows - rows // 2 if self.half_new else 0
                ts = len(steps) + 1
                steps.append(Step(case=case, run=run, ts=ts, rows=rows, new=new, first_new=head))
                head += new
        return steps

    def deletes(self) -> list[Step]:
        """A hundredth of the rows each, found by a column that is no key."""
        return [
            Step(case="delete 1 % by filter", run=run, where=f"fare >= {run} AND fare < {run + 1}")
            for run in range(self.repeat)
        ]

    def ends(self, case: str, run: int) -> bool:
        """Whether a run is the last of a write: what it leaves is compared."""
        steps = (*self.loading(), *self.upserts(), *self.deletes())
        return run == max((step.run for step in steps if step.case == case), default=-1)

    def input(self, step: Step, folder: Path) -> Path:
        """The rows of a step as a Parquet file; written at the first call."""
        file = folder / f"{step.ts}.parquet"
        if not file.exists():
            begun = file.with_suffix(".begun")
            write_parquet(begun, self._numbers(step), ts=step.ts)
            begun.rename(file)
        return file

    def _numbers(self, step: Step) -> np.ndarray:
        if step.case in _LOADS:
            return np.arange(step.rows)
        random = np.random.default_rng(step.ts)
        known = random.choice(self.rows, step.rows - step.new, replace=False)
        numbers = np.concatenate([known, np.arange(step.first_new, step.first_new + step.new)])
        random.shuffle(numbers)
        return numbers


def row_bytes() -> float:
    """Arrow bytes of a row."""
    sample: Any = trips(np.arange(_SAMPLE_ROWS), ts=0)
    return float(sample.nbytes / _SAMPLE_ROWS)
