"""Random histories of a dataset, and the ways to cut them: the same rows as one write, as many, or in pieces.

A history is a list of actions as JSON:

- `{"commit": [write, …]}`: writes that are committed together. A write has the members of a request, with its `rows`.
- `{"service": "compact"}` and `{"service": "cluster"}`.
- `{"mark": 1}`: notes the version as number 1; `{"restore": 1}` restores it.
- `{"pass": 3}`: seconds that pass before the next commit.
- `{"deletes": {"keep_seconds": 5}}`: the dataset is changed.

Left out are rows that are late by a watermark and sums that overflow, since these depend on the cuts. So are changes of
the schema and the expiry of versions.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from tests.laws.definitions import DAY, KEEP_SECONDS, PARTITIONS, definition, plain, watermarked
from tests.laws.model import KEPT, WEEK, Model

Json = dict[str, Any]
KEYS: Final = 5
CUTS: Final = ("one", "many", "pieces")
_VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "name": (None, None, "", "x", "ü"),
    "n": (None, -1, 0, 1, 2),
    "seen": (None, 1, 2, 3, 4),
    "far": (None, 1, 2, 3),
    "tags": (None, None, [], ["x"], ["y", None]),
    "marks": (None, None, {}, {"x": 1}, {"y": None, "x": 2}),
    "gone": (None, False, False, True),
}
_UNORDERED: Final[dict[str, tuple[Any, ...]]] = {"marks": _VALUES["marks"], "gone": (False, True)}
_TOTALS: Final[dict[str, tuple[Any, ...]]] = {
    "decimal(18, 2)": (None, "0.50", "-2.00", "0.00"),
    "double": (None, 0.5, -2.0, 1.0),
    "int64": (None, 5, -2, 0),
}


@dataclass(frozen=True, kw_only=True)
class History:
    """The actions of a dataset."""

    dataset: Json
    actions: list[Json]
    is_shuffled: bool = False

    @property
    def text(self) -> str:
        """As JSON."""
        return json.dumps({"dataset": self.dataset, "actions": self.actions}, ensure_ascii=False)

    @classmethod
    def of(cls, text: str) -> History:
        parsed = json.loads(text)
        return cls(dataset=parsed["dataset"], actions=parsed["actions"])

    @property
    def rows(self) -> int:
        writes = [write for action in self.actions for write in action.get("commit", ())]
        return sum(len(write.get("rows", ())) for write in writes)


def history(
    seed: int | str, is_valid: Callable[[Json], bool], *, steps: int = 8, has_clock: bool = False
) -> History:
    """The history of a seed. `is_valid`: whether a dataset can be registered. `has_clock`: whether time can pass."""
    dice = random.Random(f"history {seed}")
    shuffled = dice.random() < 0.2
    dataset = definition(dice, is_valid, shuffled=shuffled)
    dataset = watermarked(dataset, random.Random(f"watermark {seed}"), is_valid)
    writer = _Writer(dataset, dice, random.Random(f"kept {seed}"), shuffled=shuffled)
    if shuffled:
        writes = [writer.shuffled() for _ in range(dice.randint(1, 4))]
        actions = [{"commit": [write]} for write in writes]
    else:
        actions = [
            action for _ in range(dice.randint(2, steps)) for action in writer.actions(has_clock=has_clock)
        ]
    return History(dataset=dataset, actions=actions, is_shuffled=shuffled)


class _Writer:
    """Random writes to one dataset."""

    def __init__(
        self, dataset: Json, dice: random.Random, kept_dice: random.Random, *, shuffled: bool
    ) -> None:
        self.dataset, self.dice, self.kept_dice = dataset, dice, kept_dice
        self.model = Model(dataset)
        self.keyed = bool(self.model.key)
        self.moves = self.model.key == ["id"]
        self.types = self.model.types
        self.marks = 0
        self.keepable = self._keepable()
        self.seen: list[Json] = []
        # Of each key, every ordering value once.
        self.left = {key: dice.sample(range(1, 29), 28) for key in range(KEYS)} if shuffled else None

    def actions(self, *, has_clock: bool) -> list[Json]:
        dice = self.dice
        chance = dice.random()
        if chance < 0.1:
            return [{"service": dice.choice(("compact", "compact", "cluster"))}]
        if chance < 0.16 and has_clock:
            return [{"pass": dice.choice((1, 4, 5, 6, 700_000))}]
        if chance < 0.19 and self.model.is_ordered:
            return [{"deletes": {"keep_seconds": dice.choice(KEEP_SECONDS if has_clock else (0, WEEK))}}]
        if chance < 0.27 and self.model.is_ordered:
            return self._deleted(has_clock=has_clock)
        if chance < 0.33:
            if self.marks and dice.random() < 0.5:
                return [{"restore": dice.randint(1, self.marks)}]
            self.marks += 1
            return [{"mark": self.marks}]
        if chance < 0.42:
            scoped = self._scoped()
            # Which postponed rows a scope reaches depends on where it stores them.
            before = [{"service": "compact"}] if self.model.postpones else []
            return [*before, {"commit": [scoped]}]
        return [{"commit": [self._write()]}]

    def _deleted(self, *, has_clock: bool) -> list[Json]:
        """A key that is deleted, then written by newer and by older rows."""
        dice = self.dice
        rows = [self._row() for _ in range(6)]
        key = {name: rows[0][name] for name in self.model.key}
        rows = sorted(
            ({**row, **key} for row in rows if row["ts"] is not None), key=lambda row: str(row["ts"])
        )
        found: list[Json] = [{"commit": [{"operation": "upsert", "rows": rows[2:3] + rows[:1]}]}]
        found.append({"commit": [self._delete_of(rows[3:4] or rows[:1])]})
        if dice.random() < 0.3:
            self.marks += 1
            newer = {"commit": [{"operation": "upsert", "rows": rows[-1:]}]}
            found += [{"mark": self.marks}, newer, {"restore": self.marks}]
        if has_clock and dice.random() < 0.4:
            found.append({"pass": dice.choice((5, 6))})
        if dice.random() < 0.4:
            found.append({"service": dice.choice(("compact", "cluster"))})
        if dice.random() < 0.4:
            removal = {"operation": "delete", "where": f"p = '{rows[0]['p']}'"} if rows else None
            found.append({"commit": [{"operation": "upsert", "rows": rows[-1:]}]})
            if removal is not None and not self.model.postpones:
                found.append({"commit": [removal]})
        found.append(
            {"commit": [{"operation": dice.choice(("upsert", "upsert", "insert")), "rows": rows[:2]}]}
        )
        if self.model.postpones:
            found = [each for each in found if "insert" not in str(each)]
        return found if len(rows) > 3 else []

    def _delete_of(self, rows: Sequence[Json]) -> Json:
        write: Json = {
            "operation": "delete",
            "rows": [self._bare(row, ordered=self.dice.random() < 0.6) for row in rows],
        }
        return write | ({"tombstone": False} if self.dice.random() < 0.15 else {})

    def shuffled(self) -> Json:
        deletes = self.model.keep_seconds and self.dice.random() < 0.4
        rows = [self._row() for _ in range(self.dice.randint(1, 6))]
        if deletes:
            return {"operation": "delete", "rows": [self._bare(row, ordered=True) for row in rows]}
        return {"operation": "upsert", "rows": rows}

    def _write(self) -> Json:
        dice = self.dice
        if not self.keyed:
            return self._append()
        kind = dice.choice(("upsert",) * 5 + ("delete", "delete", "insert", "changelog"))
        if kind == "upsert":
            return {"operation": kind, "rows": [self._row() for _ in range(dice.randint(1, 8))]}
        if kind == "delete":
            rows = [self._bare(self._row(), ordered=dice.random() < 0.7) for _ in range(dice.randint(1, 4))]
            write: Json = {"operation": kind, "rows": rows}
            if dice.random() < 0.15:
                write["tombstone"] = False
            return write
        if kind == "insert" and not self.model.postpones:
            by_key = {self.model.key_of(row): row for row in [self._row() for _ in range(dice.randint(1, 4))]}
            option = dice.choice(({"drop_duplicates": True}, {"on_error": "quarantine"}, {}))
            operation = dice.choice(("insert", "bulk_insert"))
            return {"operation": operation, "rows": list(by_key.values()), **option}
        if kind == "changelog" and self._takes_changes:
            return self._changes()
        return {"operation": "upsert", "rows": [self._row()]}

    @property
    def _takes_changes(self) -> bool:
        return self.model.mode not in ("first", "aggregate")

    def _changes(self) -> Json:
        """Changes as facts or as claims, of which any may come."""
        dice = self.dice
        order = dice.choice(("arrival", "ordering_field")) if self.model.is_ordered else "arrival"
        changes: list[list[Any]] = []
        for _ in range(dice.randint(1, 5)):
            row = self._row()
            op = dice.choice(("+A", "+A", "-R", "-R", "-C"))
            if op != "-C":
                changes.append([op, row])
                continue
            after = {**self._row(), **{name: row[name] for name in self.model.key}}
            changes += [["-C", row], ["+C", after]]
        write: Json = {"operation": "changelog", "rows": self._with_updates(changes)}
        return {**write, "order": order}

    def _with_updates(self, changes: list[list[Any]]) -> list[list[Any]]:
        """The changes, and after or in place of some of them updates that keep fields of the row before them."""
        dice, found = self.kept_dice, []
        for op, row in changes:
            if not self.keepable or op == "-C" or dice.random() < 0.5:
                found.append([op, row])
            while self.keepable and op != "-C" and dice.random() < 0.5:
                kept = dice.sample(self.keepable, dice.randint(1, len(self.keepable)))
                found.append(["+C", {**row, **dict.fromkeys(kept, KEPT)}])
        return found or changes

    def _keepable(self) -> list[str]:
        """The fields of which a change may keep the stored value."""
        if not self.keyed or self.dataset["changelog"]["producer"] == "input":
            return []
        groups = self.model.groups
        grouped = {name for group in groups for name in (group["ordering_field"], *group["fields"])}
        return [name for name in self.types if name not in {"p", "id", "ts", "meta", "day", *grouped}]

    def _append(self) -> Json:
        dice = self.dice
        if self.seen and dice.random() < 0.35:
            rows = [
                [dice.choice(("+A", "-R", "-C")), dice.choice(self.seen)] for _ in range(dice.randint(1, 6))
            ]
            return {"operation": "changelog", "rows": rows, "on_error": "quarantine"}
        rows = [self._row() for _ in range(dice.randint(1, 6))]
        self.seen += rows[:2]
        return {"operation": dice.choice(("insert", "insert", "bulk_insert")), "rows": rows}

    def _scoped(self) -> Json:
        """A write that removes rows that it does not name."""
        dice = self.dice
        rows = [{**self._row(), "n": 1} for _ in range(dice.randint(1, 5))]
        found: list[Json] = [
            {"operation": "snapshot", "rows": rows},
            {"operation": "overwrite", "rows": rows},
            {"operation": "overwrite", "rows": rows, "overwrite": {"scope": "filter", "where": "n >= 0"}},
            {"operation": "delete", "where": "n >= 0"},
            {"operation": "delete", "where": "p = 'a'"},
        ]
        if "partition_by" in self.dataset:
            found += [
                {"operation": "overwrite", "rows": rows, "overwrite": {"scope": "partitions"}},
                {"operation": "delete_partition", "partitions": ["p=a"]},
            ]
        return dice.choice(found)

    def _row(self) -> Json:
        dice = self.dice
        number = dice.randrange(KEYS)
        place = dice.randrange(2) if self.moves and not self.left else number % 2
        row: Json = {"p": PARTITIONS[place], "id": number, "day": DAY}
        moment = self.left[number].pop() if self.left else dice.choice((None, *range(1, 10)))
        value = _ordering_value(self.types["ts"], moment)
        absent = dice.random() < 0.5 and value is None
        row |= {"ts": value, "meta": None if absent else {"ts": value, "by": dice.choice((None, "x"))}}
        row |= {name: dice.choice(values) for name, values in _VALUES.items()}
        row["total"] = dice.choice(_TOTALS[self.types["total"]])
        if self.left:
            # What no value orders is the same in every row of a key.
            row |= {name: values[number % len(values)] for name, values in _UNORDERED.items()}
            row |= {"seen": moment, "far": moment}
            if self.model.mode == "partial":
                row |= {"ts": None, "meta": None, "total": None}
        return row

    def _bare(self, row: Json, *, ordered: bool) -> Json:
        """What a delete needs of a row."""
        names = ["p", "id"]
        if ordered:
            names.append("meta" if self.model.ordering_field == "meta.ts" else "ts")
        return {name: row[name] for name in names}


def _ordering_value(kind: str, number: int | None) -> Any:
    if number is None:
        return None
    match kind:
        case "int64":
            return number
        case "date":
            return f"2026-01-{number:02}"
        case "string":
            return f"{number:02}"
    return f"{number}.25"


# The cuts.

Atom = tuple[str, Any]
"""A write without its rows, as JSON, and a row; a write that is not cut as it is, and no row."""


def cut(history: History, name: str, seed: int | str) -> History:
    """The same rows in other writes and commits. `name`: one of CUTS, or `shuffled`."""
    dice = random.Random(f"cut {seed} {name}")
    keyed = bool(history.dataset.get("record_key"))
    actions: list[Json] = []
    for is_commit, run in groupby(history.actions, lambda action: "commit" in action):
        if not is_commit:
            actions += run
            continue
        writes = [write for action in run for write in action["commit"]]
        atoms = [atom for number, write in enumerate(writes) for atom in _atoms(write, number, keyed)]
        if name == "shuffled":
            dice.shuffle(atoms)
        actions += _commits(_pieces(_expressed(atoms, history.dataset, dice), name, dice), dice)
    return History(dataset=history.dataset, actions=actions, is_shuffled=history.is_shuffled)


def _atoms(write: Json, number: int, keyed: bool) -> Iterable[Atom]:
    """The rows of a write; an insert that fails as a whole, and a write with a scope, stay whole."""
    operation = write["operation"]
    inserts = keyed and operation in ("insert", "bulk_insert")
    forgives = write.get("drop_duplicates") or write.get("on_error") == "quarantine"
    scoped = operation in ("snapshot", "overwrite", "delete_partition") or "where" in write
    if scoped or (inserts and not forgives):
        yield json.dumps(write), None
    else:
        shape = {name: value for name, value in write.items() if name != "rows"}
        # Rows of two inserts are not one insert: the second one may find a row of the first one.
        shape |= {"number": number} if inserts else {}
        for row in write["rows"]:
            yield json.dumps(shape), row


def _expressed(atoms: Sequence[Atom], dataset: Json, dice: random.Random) -> list[Atom]:
    """The same effects as other operations: deletes as marked rows, and both as claims of a changelog."""
    marker = dataset.get("delete_marker")
    marks = marker is not None and dice.random() < 0.5
    compares = dataset.get("merge_mode") in ("event_time", "partial") and "ordering_field" in dataset
    claims = compares and dice.random() < 0.3
    found: list[Atom] = []
    for shape, row in atoms:
        write = json.loads(shape)
        if row is None or set(write) - {"operation"} or write["operation"] not in ("upsert", "delete"):
            found.append((shape, row))
            continue
        deletes = write["operation"] == "delete" or bool(marker and row.get(marker))
        if claims:
            op = "-R" if deletes else dice.choice(("+A", "+C"))
            shape, row = json.dumps({"operation": "changelog", "order": "ordering_field"}), [op, row]
        elif deletes and marks:
            shape, row = json.dumps({"operation": "upsert"}), {**row, marker: True}
        found.append((shape, row))
    return found


def _pieces(atoms: Sequence[Atom], name: str, dice: random.Random) -> list[Json]:
    """The writes: adjacent rows of one shape are one, unless they are cut."""
    writes: list[Json] = []
    last: str | None = None
    for shape, row in atoms:
        if row is None:
            writes.append(json.loads(shape))
            last = None
            continue
        goes_on = {"one": True, "many": False}.get(name, dice.random() < 0.6)
        if shape == last and goes_on:
            writes[-1]["rows"].append(row)
        else:
            write = json.loads(shape)
            write.pop("number", None)
            writes.append({**write, "rows": [row]})
        last = shape
    return writes


def _commits(writes: Sequence[Json], dice: random.Random) -> list[Json]:
    """Commits of one write or of several."""
    together = dice.choice((0.0, 0.5, 0.9))
    commits: list[list[Json]] = []
    for write in writes:
        joins = commits and not is_alone(commits[-1][-1]) and not is_alone(write) and dice.random() < together
        if joins:
            commits[-1].append(write)
        else:
            commits.append([write])
    return [{"commit": commit} for commit in commits]


def is_alone(write: Json) -> bool:
    """Whether the write has a commit of its own."""
    operation = write["operation"]
    scoped = operation in ("snapshot", "overwrite", "delete_partition") or "where" in write
    return scoped or (operation == "changelog" and write.get("on_error") == "quarantine")


def copy(
    dataset: Json, changes: Sequence[tuple[str, Json]], seed: int | str, is_valid: Callable[[Json], bool]
) -> History:
    """A feed as the input of another dataset: one that keeps rows as they are, or one of the same definition."""
    dice = random.Random(f"copy {seed}")
    merges = dataset.get("merge_mode") in ("first", "aggregate")
    same = not merges and dice.random() < 0.5
    target = dataset if same else plain(dataset, dice, is_valid)
    write: Json = {"operation": "changelog"}
    if not dataset.get("record_key"):
        # It would fail otherwise, if a retraction of the feed came before its row.
        write["on_error"] = "fail"
    writes: list[Json] = []
    for change in changes:
        if writes and dice.random() < 0.8:
            writes[-1]["rows"].append(list(change))
        else:
            writes.append({**write, "rows": [list(change)]})
    commits = _commits(writes, dice) if dataset.get("record_key") else [{"commit": [each]} for each in writes]
    return History(dataset=target, actions=commits)
