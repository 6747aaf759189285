"""Mutations that a test was seen to notice, each with the first one that did: `killed.txt`, a line for each.

CI tries a share of these only. So it does not fail because of a mutation that changes nothing which a test could
notice, or for which there is no test yet.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.mutants.hunt import Trial
from tests.mutants.mutation import Mutation, mutations, path_of
from tests.mutants.places import PLACES

KILLED: Final = Path(__file__).with_name("killed.txt")


def kills() -> list[Trial]:
    """The recorded ones."""
    return [_trial(line) for line in KILLED.read_text(encoding="utf-8").splitlines()]


def _trial(line: str) -> Trial:
    name, _, test = line.rpartition(" | ")
    return Trial(mutation=Mutation.parse(name), tests=(test,))


def record(trials: Iterable[Trial]) -> None:
    """Replaces the records. Of a mutation that is recorded twice the later one counts."""
    lines = {trial.mutation.name: f"{trial.mutation.name} | {trial.tests[0]}\n" for trial in trials}
    KILLED.write_text("".join(lines[name] for name in sorted(lines)), encoding="utf-8")


def present(trials: Iterable[Trial]) -> list[Trial]:
    """Those whose place and text the code still has."""
    of_module = cache(_of_module)
    return [trial for trial in trials if trial.mutation in of_module(trial.mutation.module)]


def share(trials: Sequence[Trial], count: int, seed: str) -> list[Trial]:
    """Some of them: the same ones for the same seed."""
    return random.Random(seed).sample(list(trials), min(count, len(trials)))


def candidates(seed: str) -> list[Trial]:
    """Every mutation of every place, one of each place, then a second one of each."""
    rounds: list[tuple[int, str, Mutation]] = []
    for place in PLACES:
        of_place = mutations(place, path_of(place.partition(":")[0]).read_text(encoding="utf-8"))
        random.Random(f"{seed} {place}").shuffle(of_place)
        rounds += [(number, place, mutation) for number, mutation in enumerate(of_place)]
    rounds.sort(key=lambda each: each[:2])
    return [Trial(mutation=mutation, tests=modules_of_tests(place)) for _, place, mutation in rounds]


def modules_of_tests(place: str) -> tuple[str, ...]:
    """Paths of the modules of tests of a place."""
    return tuple(f"tests/{module.replace('.', '/')}.py" for module in PLACES[place].split())


def _of_module(module: str) -> set[Mutation]:
    source = path_of(module).read_text(encoding="utf-8")
    places = [place for place in PLACES if place.startswith(f"{module}:")]
    return {mutation for place in places for mutation in mutations(place, source)}
