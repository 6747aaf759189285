"""Random histories that engines read: the writes of the laws, and changes of the schema between them.

A dataset has the columns of the laws, which writes know by name, and further columns, named `x1`, `x2`, …, which are
added, renamed, widened, dropped and added again with another type. Some datasets are cleaned at the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from tests.laws.bodies import records
from tests.laws.histories import History, history
from tests.laws.model import KEPT
from tests.laws.tables import is_valid
from tests.open.datasets import Json, OpenDataset, Tenant
from tests.open.values import value_of

_STEPS: Final = 8
_CHANGES: Final = 0.45
_TYPES: Final = (
    "int32", "int8", "uint8", "uint16", "uint32", "float", "decimal(9, 2)", "timestamp(ms)", "timestamp_ntz(ms)",
    "date", "string", "binary", "uuid", "boolean", "list<int32>", "struct<a: int32, b: string>", "map<string, uint32>",
    "list<struct<a: uint8, at: timestamp>>",
)  # fmt: skip
# A number that becomes a real number is another matter: engines read such files only once they are compacted.
_WIDER: Final = {
    "int8": "int16", "int16": "int32", "int32": "int64", "uint8": "uint16", "uint16": "int32", "uint32": "int64",
    "float": "double", "decimal(9, 2)": "decimal(18, 2)", "timestamp(ms)": "timestamp",
    "timestamp_ntz(ms)": "timestamp_ntz", "list<int32>": "list<int64>",
    "struct<a: int32, b: string>": "struct<a: int64, b: string, c: list<date>>",
}  # fmt: skip
_EXTRA_ROWS: Final = ("upsert", "insert", "bulk_insert", "overwrite", "snapshot")
_REFUSALS: Final = ("/problems/duplicate-key", "/problems/retracted-row-missing")


def played(tenant: Tenant, seed: int | str) -> OpenDataset:
    """A dataset with the past of a seed."""
    one = history(f"open {seed}", is_valid, steps=_STEPS)
    dataset = tenant.dataset(f"h-{str(seed).replace(' ', '-')}", **one.dataset)
    _Player(dataset, random.Random(f"open {seed}")).play(one)
    return dataset


class _Player:
    """Plays a history, and changes the schema as it goes."""

    def __init__(self, dataset: OpenDataset, dice: random.Random) -> None:
        self.dataset, self.dice = dataset, dice
        self.extra: dict[str, str] = {}
        self.free: list[str] = [f"x{number}" for number in range(1, 6)]
        self.marks: dict[int, int] = {}

    def play(self, one: History) -> None:
        for number, action in enumerate(one.actions):
            if self.dice.random() < _CHANGES:
                self._change()
            self._act(action)
            if self.dice.random() < 0.1:
                self.dataset.succeed("tags", name=f"t{number}")
        if self.dice.random() < 0.15 and self.dataset.version:
            self.dataset.succeed("cleans", versions=self.dice.randint(1, 4))

    def _act(self, action: Json) -> None:
        match action:
            case {"commit": writes}:
                for write in writes:
                    self._write(write)
            case {"service": "compact"}:
                self.dataset.succeed("compactions")
            case {"service": "cluster"}:
                self.dataset.succeed("clusterings", columns=["n", "name"])
            case {"mark": number}:
                self.marks[number] = self.dataset.version
            case {"restore": number}:
                self.dataset.succeed("restores", version=self.marks[number])
            case {"deletes": deletes}:
                headers = {"If-Match": self.dataset.client.get(self.dataset.path).headers["etag"]}
                self.dataset.client.patch(self.dataset.path, json={"deletes": deletes}, headers=headers)

    def _write(self, write: Json) -> None:
        options = {name: value for name, value in write.items() if name not in ("operation", "rows")}
        rows = write.get("rows")
        if rows is not None:
            rows = [self._record(write["operation"], row) for row in rows]
        job = self.dataset.write(write["operation"], rows, **options)
        assert job["state"] == "succeeded" or job["error"]["type"] in _REFUSALS, job

    def _record(self, operation: str, row: Any) -> Json:
        if operation == "changelog":
            return _change(*row)
        if operation not in _EXTRA_ROWS:
            return dict(row)
        return {**row, **{name: value_of(self.dice, kind) for name, kind in self.extra.items()}}

    # Changes of the schema.

    def _change(self) -> None:
        changes: list[Callable[[], Json | None]] = [self._add, self._add, self._add]
        if self.extra:
            changes += [self._drop, self._rename, self._widen, self._widen, self._reorder]
        change = self.dice.choice(changes)()
        if change is not None:
            self.dataset.change(change)

    def _add(self) -> Json | None:
        if not self.free:
            return None
        name, kind = self._free_name(), self.dice.choice(_TYPES)
        self.extra[name] = kind
        return {"kind": "add", "field": {"name": name, "type": kind}}

    def _drop(self) -> Json:
        name = self.dice.choice(list(self.extra))
        del self.extra[name]
        self.free.append(name)
        return {"kind": "drop", "name": name}

    def _rename(self) -> Json | None:
        if not self.free:
            return None
        name, to = self.dice.choice(list(self.extra)), self._free_name()
        self.extra[to] = self.extra.pop(name)
        self.free.append(name)
        return {"kind": "rename", "name": name, "to": to}

    def _widen(self) -> Json | None:
        name = self.dice.choice(list(self.extra))
        wider = _WIDER.get(self.extra[name])
        if wider is None:
            return None
        self.extra[name] = wider
        return {"kind": "widen", "name": name, "type": wider}

    def _reorder(self) -> Json:
        fields = self.dataset.client.get(self.dataset.path).json()["schema"]["fields"]
        names = [each["name"] for each in fields]
        self.dice.shuffle(names)
        return {"kind": "reorder", "names": names}

    def _free_name(self) -> str:
        return self.free.pop(self.dice.randrange(len(self.free)))


def _change(op: str, row: Json) -> Json:
    """A change as the feed writes it; one that keeps fields as Debezium does."""
    if KEPT not in row.values():
        return {"op": op, "row": row}
    return records({"operation": "changelog", "rows": [[op, row]]}, random.Random(0))[0]
