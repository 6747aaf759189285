"""A dataset each of whose values is found again wherever it is sent, and which of them a reader may get.

Texts and numbers have marks that occur nowhere else, in every form in which formats write them. A reader may get the
values that `/rows` and `/changes` give it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from tests.open.datasets import Json, OpenDataset, Tenant, answered
from tests.open.grants import Restriction
from tests.open.served_bytes import plain

FIRST_NUMBER: Final = 0x5B97E9081D000000
"""The least marked number. Those of a dataset differ from it in the last three bytes."""
NUMBERS_MAX: Final = 0xFFFFFF
_TOP: Final = FIRST_NUMBER.to_bytes(8, "little")[3:]
_TEXT: Final = re.compile(rb"Q7([0-9a-f]{6})Z")
_DECIMAL: Final = re.compile(rb"(?<!\d)\d{19}(?!\d)")
_LITTLE: Final = re.compile(rb"([\x00-\xff]{3})" + re.escape(_TOP))
_BIG: Final = re.compile(re.escape(_TOP[::-1]) + rb"([\x00-\xff]{3})")
_TYPES: Final = {
    "region": "string", "id": "int64", "level": "int32", "email": "string", "account": "int64", "note": "string",
    "tags": "list<string>", "place": "struct<city: string, code: int64>", "marks": "map<string, int64>",
}  # fmt: skip
_KINDS: Final[tuple[Json, ...]] = (
    {"record_key": ["region", "id"], "partition_by": ["region"], "table_type": "merge_on_read"},
    {"record_key": ["region", "id"], "partition_by": ["region"], "table_type": "copy_on_write"},
    {"record_key": ["id"], "bucket": {"mode": "fixed", "count": 3}, "index": {"type": "bloom"}},
    {"record_key": ["id"], "table_type": "merge_on_read", "changelog": {"producer": "deferred"}},
    {"partition_by": ["truncate(9, note)", "level"]},
)
_MASKS: Final = ("region", "id", "email", "account", "note", "tags", "place", "marks")
_REGIONS: Final = 4
_ROWS: Final = 24
_numbers = count(1)


def restriction(dice: random.Random) -> Restriction:
    """A random one, which the schema of every version fits."""
    where = dice.choice(
        (f"level < {dice.randint(1, 9)}", "level IN (2, 5)", "level >= 7", "level > 100", None)
    )
    masked = dice.sample(_MASKS, dice.randint(0 if where else 1, 3))
    return Restriction(where=where, mask=tuple(masked))


def planted(tenant: Tenant, seed: int | str) -> OpenDataset:
    """A dataset with a random past: rows that change, move in and out of filters, are deleted and compacted."""
    dice = random.Random(f"planted {seed}")
    schema = {"fields": [{"name": name, "type": kind} for name, kind in _TYPES.items()]}
    kind = _KINDS[next(_numbers) % len(_KINDS)]
    dataset = tenant.dataset(f"planted-{next(_numbers)}", schema=schema, **kind)
    writer = _Writer(dice)
    insert = "upsert" if "record_key" in kind else "insert"
    dataset.succeed("writes", operation=insert, source={"kind": "rows", "rows": writer.rows(range(_ROWS))})
    for step in dice.sample(range(7), 4):
        writer.act(dataset, insert, step)
    if "changelog" in kind:
        # Until then the rows are in logs, which tables of engines do not have.
        dataset.succeed("compactions")
    return dataset


class _Writer:
    """Rows of a dataset. Each value has a number of its own, but keys and regions, which stay."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.values = count(dice.randrange(1 << 20))
        self.regions = [self._text() for _ in range(_REGIONS)]
        self.ids = [self._number() for _ in range(2 * _ROWS)]
        self.dropped = False

    def rows(self, keys: Any) -> list[Json]:
        """Rows of these keys with new values."""
        return [self._row(key) for key in keys]

    def act(self, dataset: OpenDataset, insert: str, step: int) -> None:
        """One change of the dataset."""
        keys = self.dice.sample(range(2 * _ROWS), 8)
        match step:
            case 0 if insert == "upsert":
                names = dataset.registration["record_key"]
                dataset.delete(*({name: row[name] for name in names} for row in self.rows(keys)))
            case 0 | 1:
                dataset.succeed("writes", operation="delete", where=f"level = {self.dice.randrange(10)}")
            case 2:
                dataset.succeed("compactions")
            case 3:
                dataset.succeed("clusterings", columns=["level"])
            case 4:
                dataset.change({"kind": "rename", "name": "account", "to": "number"})
                dataset.change({"kind": "rename", "name": "number", "to": "account"})
            case 5:
                dataset.change({"kind": "add", "field": {"name": "late", "type": "string"}})
            case _:
                rows = [row for key in keys for row in self.rows([key])]
                dataset.succeed("writes", operation=insert, source={"kind": "rows", "rows": rows})

    def _row(self, key: int) -> Json:
        return {
            "region": self.regions[key % _REGIONS],
            "id": self.ids[key],
            "level": self.dice.randrange(10),
            "email": self._text(),
            "account": self._number(),
            "note": self._text(),
            "tags": [self._text() for _ in range(self.dice.randrange(3))],
            "place": {"city": self._text(), "code": self._number()},
            "marks": {self._text(): self._number()},
        }

    def _text(self) -> str:
        return f"Q7{next(self.values) & NUMBERS_MAX:06x}Z"

    def _number(self) -> int:
        return FIRST_NUMBER + (next(self.values) & NUMBERS_MAX)


def marks(content: bytes) -> set[int]:
    """The numbers of the marked values in whatever is sent."""
    return {number for each in plain(content) for number in _marks(each)}


def _marks(content: bytes) -> Iterator[int]:
    yield from (int(each, 16) for each in _TEXT.findall(content))
    for each in _DECIMAL.findall(content):
        number = int(each) - FIRST_NUMBER
        if 0 <= number <= NUMBERS_MAX:
            yield number
    yield from (int.from_bytes(each, "little") for each in _LITTLE.findall(content))
    yield from (int.from_bytes(each, "big") for each in _BIG.findall(content))


def visible_marks(dataset: OpenDataset) -> set[int]:
    """The numbers of the values that the key of the dataset may see, as rows of versions and as changes."""
    found: set[int] = set()
    for version in dataset.kept_versions():
        found |= marks(repr(dataset.rows(version).to_pylist()).encode())
        found |= marks(repr(dataset.rows(version, with_logs=True).to_pylist()).encode())
    position = 0
    while True:
        page = dataset.client.get(f"{dataset.path}/changes", params={"since": position, "limit": 10_000})
        if page.status_code == 403:
            return found
        document = answered(page).json()
        found |= marks(page.content)
        if document["pending"] == 0:
            return found
        position = document["next_since"]
