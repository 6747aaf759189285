"""Rules of the merge and of tombstone files, broken on purpose: a text of the code, and another one in its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

_MERGE: Final = "app.kernel.commit.merge"


@dataclass(frozen=True, kw_only=True)
class BrokenRule:
    """`function`: a module, and a function or a method in it."""

    name: str
    function: str
    text: str
    other: str


def _rule(name: str, function: str, text: str, other: str) -> BrokenRule:
    return BrokenRule(name=name, function=f"{_MERGE}.{function}", text=text, other=other)


_STEPS: Final = "incoming_rows:IncomingRows.steps"
RULES: Final = (
    _rule("a later row of an equal value wins", "key_steps:KeySteps.wins", "order <= self", "order < self"),
    _rule(
        "a delete with a value leaves a tombstone",
        _STEPS,
        "np.where((keeps & ~buries & ~corrected)[takes], TOMBSTONE, NOTHING)",
        "NOTHING",
    ),
    _rule(
        "a delete without a value leaves one", _STEPS, "buries = unvalued & keeps", "keeps = keeps & False"
    ),
    _rule("a delete without a value removes any row", _STEPS, "NEVER, ALWAYS", "NEVER, 0"),
    _rule("the old row of a correction has no effect", _STEPS, "if ordered:", "if False:"),
    _rule("facts are not compared", _STEPS, "reach[by_arrival] = ALWAYS", "pass"),
    _rule("the first row stays", _STEPS, "if mode is MergeMode.FIRST", "if False"),
    _rule(
        "a tombstone ends after its time",
        "key_merger:KeyMerger._states_of",
        "(until < self.facts.committed_at[job])",
        "False",
    ),
    _rule(
        "a tombstone lasts until its time",
        "key_merger:KeyMerger._states_of",
        "(until < self.facts.committed_at[job])",
        "(until <= self.facts.committed_at[job])",
    ),
    _rule(
        "a row that lives ends the tombstone",
        "merge:_MergeInput._tombstones_stay",
        "(merger.table.states.kind[key] == TOMBSTONE) & (merger.table.job[key] == TABLE)",
        "np.ones(len(key), dtype=bool)",
    ),
    _rule(
        "rows of a snapshot replace any",
        "key_merger:_UnitRun.of",
        "np.where(firsts, ALWAYS, steps.reach)",
        "steps.reach",
    ),
    _rule(
        "a late row fills nulls only",
        "key_merger:KeyMerger._folded",
        "newer = run.wins[places]",
        "newer = np.ones(len(places), dtype=bool)",
    ),
    _rule(
        "late rows of a write fill nulls only",
        "key_merger:KeyMerger._folded",
        "dtype=bool), ~newer[rest]",
        "dtype=bool), newer[rest] & False",
    ),
    _rule(
        "rows of a life alone are merged",
        "key_merger:_UnitRun.life",
        "& (np.arange(len(unit)) >= first[unit])",
        "",
    ),
    _rule(
        "a group needs its value",
        "fold:Fold.states",
        "pc.and_(is_raw, rows",
        "pc.and_(pa.scalar(False), rows",
    ),
    _rule("a group of an equal value wins", "fold:_takes_over", "greater_equal", "greater"),
    _rule(
        "a kept field is that of the live row",
        "kept_fields:KeptFields.resolved",
        "np.where(was_live[origin], before.row[origin], _NO_PLACE)",
        "np.full(len(origin), _NO_PLACE)",
    ),
    _rule(
        "a field that the row before keeps, too, is that of the one before",
        "kept_fields:KeptFields.resolved",
        "np.where(from_row, place_of[before.cause], _NO_PLACE)",
        "np.full(len(from_row), _NO_PLACE)",
    ),
    _rule("a partition is that of the first row", "fold:Fold.of", "if name in place_fields", "if False"),
    _rule(
        "rows of a write keep their order", "incoming_rows:Units.of", 'kind="stable")', 'kind="stable")[::-1]'
    ),
)

FILE_RULES: Final = (
    BrokenRule(
        name="a compaction keeps tombstones",
        function="workers.engine.merge.tombstone_files:TombstoneFiles._left",
        text="in self.tombstones.left(number)",
        other="in ()",
    ),
    BrokenRule(
        name="a tombstone that ended is marked",
        function="workers.engine.merge.tombstone_files:TombstoneFiles.finish",
        text="for number in tombstones.ended_files() if",
        other="for number in () if",
    ),
    BrokenRule(
        name="a restore brings tombstones back",
        function="app.kernel.commit.restore_plan:plan_restore",
        text="*tombstones_to_list",
        other="",
    ),
)


@contextmanager
def broken(rule: BrokenRule) -> Iterator[None]:
    """The merge with the rule broken. Its functions keep their identity, so that all who imported them are reached."""
    module_name, _, path = rule.function.partition(":")
    module = import_module(module_name)
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    function = _function(module, path)
    lines = source.splitlines(keepends=True)
    first = function.__code__.co_firstlineno - 1
    head, rest = "".join(lines[:first]), "".join(lines[first:])
    assert rule.text in rest, f"{rule.name}: {rule.function} has no {rule.text!r}"
    changed = compile(
        head + rest.replace(rule.text, rule.other, 1), module.__file__, "exec", dont_inherit=True
    )
    before = function.__code__
    function.__code__ = _code(changed, before.co_qualname)
    try:
        yield
    finally:
        function.__code__ = before


def _function(module: Any, path: str) -> FunctionType:
    found: Any = module
    for name in path.split("."):
        found = vars(found)[name]
    found = getattr(found, "__func__", found)
    found = found.fget if isinstance(found, property) else found
    assert isinstance(found, FunctionType)
    return found


def _code(of: CodeType, name: str) -> CodeType:
    """The code of the function of this qualified name."""
    found = [each for each in _codes(of) if each.co_qualname == name]
    assert len(found) == 1, name
    return found[0]


def _codes(of: CodeType) -> Iterator[CodeType]:
    for each in of.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)
