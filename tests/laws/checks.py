"""Holds what a dataset shows after a history to the model, and shrinks a history that it does not hold for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, runtime_checkable

from tests.laws.histories import CUTS, History, copy, cut
from tests.laws.model import Model, Refused

Json = dict[str, Any]
Change = tuple[str, Json]
FOLDING: Final = ("full", "deferred")
"""The producers whose feed folds to the table."""
_TAKES_BACK: Final = ("-R", "-C")


class Dataset(Protocol):
    """A dataset of the service, empty at first."""

    @property
    def version(self) -> int: ...

    def commit(self, writes: list[Json]) -> list[bool]:
        """Commits writes together. Returns which of them were refused."""
        ...

    def serve(self, service: str) -> None: ...

    def restore(self, version: int) -> None: ...

    def patch(self, keep_seconds: int) -> None:
        """Changes how long later deletes leave tombstones."""
        ...

    def rows(self) -> list[Json]: ...

    def rows_at(self, version: int) -> list[Json]: ...

    def changes(self, since: int) -> list[Change]:
        """The feed from an offset on."""
        ...


@runtime_checkable
class Clocked(Protocol):
    """A dataset whose clock can be set; only such histories let time pass."""

    def wait(self, seconds: float) -> None:
        """Lets time pass before the next commit."""
        ...


NewDataset = Callable[[Json], Dataset]


class Broken(AssertionError):
    """A dataset that does not keep a law. `action`: the number of the action after which it does not."""

    def __init__(self, law: str, action: int, found: Any, expected: Any) -> None:
        super().__init__(f"{law}, after action {action}:\n  found    {found}\n  expected {expected}")
        self.law, self.action = law, action


@dataclass(kw_only=True)
class _Feed:
    """The fold of a feed, change by change."""

    model: Model
    producer: str
    changes: list[Change] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)

    def add(self, changes: list[Change], action: int) -> None:
        self.changes += changes
        for op, row in changes if self.producer in FOLDING else ():
            text = self.model.text(row)
            if op not in _TAKES_BACK:
                self.rows[text] += 1
            elif self.rows[text]:
                self.rows[text] -= 1
            else:
                raise Broken("a change takes back what is there", action, f"{op} {text}", +self.rows)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a history ended with."""

    model: Model
    changes: list[Change]


def check(history: History, new_dataset: NewDataset) -> Checked:
    """Runs the actions on a new dataset and on the model, and compares them after each. Raises Broken."""
    model, dataset = Model(history.dataset), new_dataset(history.dataset)
    producer = history.dataset["changelog"]["producer"]
    feed = _Feed(model=model, producer=producer)
    marks: dict[int, int] = {}
    now = 0.0
    for number, action in enumerate(history.actions):
        try:
            now += action.get("pass", 0)
            _run(action, number, model, dataset, marks, now)
        except Exception as error:
            if isinstance(error, Broken):
                raise
            raise Broken("the action has no error", number, repr(error)[:2_000], None) from error
        model.note(dataset.version)
        _compare(
            "the table is that of the model", number, Counter(map(model.text, dataset.rows())), model.rows()
        )
        feed.add(dataset.changes(len(feed.changes)), number)
        if producer == "full":
            _compare("the feed folds to the table", number, +feed.rows, model.rows())
        if producer == "none" and feed.changes:
            raise Broken("there is no feed", number, feed.changes, [])
    number = len(history.actions)
    if producer == "deferred" or model.state.waiting:
        dataset.serve("compact")
        model.compact()
        feed.add(dataset.changes(len(feed.changes)), number)
        if producer in FOLDING:
            _compare("the feed folds to the table once it is compacted", number, +feed.rows, model.rows())
        model.note(dataset.version)
    for version, state in model.versions.items():
        if version:
            found = Counter(map(model.text, dataset.rows_at(version)))
            _compare(f"version {version} is what it was", number, found, model.rows(state))
    return Checked(model=model, changes=feed.changes)


def _run(
    action: Json, number: int, model: Model, dataset: Dataset, marks: dict[int, int], now: float
) -> None:
    if "commit" in action:
        expected = []
        for write in action["commit"]:
            try:
                model.write(write, now)
                expected.append(False)
            except Refused:
                expected.append(True)
        _compare("writes are refused", number, dataset.commit(action["commit"]), expected)
    elif "service" in action:
        if action["service"] == "compact":
            model.compact()
        dataset.serve(action["service"])
    elif "pass" in action:
        assert isinstance(dataset, Clocked)
        dataset.wait(action["pass"])
    elif "deletes" in action:
        model.patch(action["deletes"])
        dataset.patch(action["deletes"]["keep_seconds"])
    elif "mark" in action:
        marks[action["mark"]] = dataset.version
    elif "restore" in action and action["restore"] in marks:
        model.restore(marks[action["restore"]])
        dataset.restore(marks[action["restore"]])


def _compare(law: str, action: int, found: Any, expected: Any) -> None:
    if found != expected:
        if isinstance(found, Counter):
            found, expected = dict(found - expected), dict(expected - found)
        raise Broken(law, action, found, expected)


def check_cuts(
    history: History, seed: int | str, new_dataset: NewDataset, is_valid: Callable[[Json], bool]
) -> int:
    """Checks the history as it is, in its cuts, and copies of its feed: all end with the same table.

    Returns the number of rows written. Raises Failure.
    """
    first = _checked(history, new_dataset)
    cuts = [cut(history, name, seed) for name in CUTS]
    if history.is_shuffled:
        cuts += [cut(history, "shuffled", f"{seed} {number}") for number in range(2)]
    if history.dataset["changelog"]["producer"] in FOLDING:
        cuts.append(copy(history.dataset, first.changes, seed, is_valid))
    table = _settled(first.model)
    for each in cuts:
        if _settled(_checked(each, new_dataset).model) != table:
            raise AssertionError(f"in the model the cuts of a history differ:\n{history.text}\n{each.text}")
    return history.rows + sum(each.rows for each in cuts)


def _checked(history: History, new_dataset: NewDataset) -> Checked:
    try:
        return check(history, new_dataset)
    except Broken as broken:
        raise Failure(history=history, broken=broken) from broken


def _settled(model: Model) -> Counter[str]:
    """The rows once nothing is postponed."""
    model.compact()
    return model.rows()


@dataclass
class Failure(Exception):
    """A history that a dataset does not keep the laws in."""

    history: History
    broken: Broken

    def __str__(self) -> str:
        return f"{self.broken}\n  {self.history.text}"


def shrunk(failure: Failure, new_dataset: NewDataset, seconds_max: float) -> Failure:
    """The smallest history with a failure of the same kind that is found within this time."""
    end = time.monotonic() + seconds_max
    smallest = failure
    goes_on = True
    while goes_on:
        goes_on = False
        for smaller in _smaller(smallest.history):
            if time.monotonic() > end:
                return smallest
            try:
                check(smaller, new_dataset)
            except Broken as broken:
                smallest, goes_on = Failure(history=smaller, broken=broken), True
                break
            except Exception:
                # What is left of the history makes no sense, as a dataset without its ordering field.
                continue
    return smallest


def _smaller(history: History) -> Iterator[History]:
    """Histories that are a little smaller: those that leave out most come first."""
    actions = history.actions
    size = len(actions) // 2
    while size:
        for start in range(0, len(actions), size):
            yield replace(history, actions=actions[:start] + actions[start + size :])
        size //= 2
    for at, action in enumerate(actions):
        for writes in _smaller_commits(action.get("commit", [])):
            yield replace(history, actions=[*actions[:at], *writes, *actions[at + 1 :]])
    for dataset in _smaller_datasets(history.dataset):
        yield replace(history, dataset=dataset)
    yield from _without_values(history)


def _smaller_commits(writes: list[Json]) -> Iterator[list[Json]]:
    """Commits of fewer writes or rows, and one commit for each write."""
    for number, write in enumerate(writes):
        before, after = writes[:number], writes[number + 1 :]
        if len(writes) > 1:
            yield [{"commit": [*before, *after]}]
        rows = write.get("rows", [])
        for place in range(len(rows)):
            if len(rows) > 1:
                smaller = {**write, "rows": [*rows[:place], *rows[place + 1 :]]}
                yield [{"commit": [*before, smaller, *after]}]
    if len(writes) > 1:
        yield [{"commit": [write]} for write in writes]


def _smaller_datasets(dataset: Json) -> Iterator[Json]:
    """The dataset with more defaults."""
    names = ("index", "bucket", "table_type", "partition_by", "delete_marker", "sequence_groups", "watermark")
    for name in names:
        if name in dataset:
            yield {key: value for key, value in dataset.items() if key != name}
    if dataset["changelog"] != {"producer": "full"}:
        yield {**dataset, "changelog": {"producer": "full"}}
    functions = dataset.get("aggregates", {})
    for name in functions:
        yield {**dataset, "aggregates": {key: value for key, value in functions.items() if key != name}}


def _without_values(history: History) -> Iterator[History]:
    """The same rows without the values of one field, and without the field."""
    kept = {"p", "id", history.dataset.get("ordering_field", "").partition(".")[0]}
    for each in history.dataset["schema"]["fields"]:
        name = each["name"]
        if name in kept:
            continue
        actions = [
            {"commit": [_without(write, name) for write in action["commit"]]}
            if "commit" in action
            else action
            for action in history.actions
        ]
        if actions != history.actions:
            yield replace(history, actions=actions)
        else:
            fields = [field for field in history.dataset["schema"]["fields"] if field["name"] != name]
            yield replace(history, dataset={**history.dataset, "schema": {"fields": fields}})


def _without(write: Json, name: str) -> Json:
    if "rows" not in write:
        return write
    if write["operation"] != "changelog":
        return {**write, "rows": [_rest(row, name) for row in write["rows"]]}
    return {**write, "rows": [[op, _rest(row, name)] for op, row in write["rows"]]}


def _rest(row: Json, name: str) -> Json:
    return {key: value for key, value in row.items() if key != name}
