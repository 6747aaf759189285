"""The places of mutations fit the code, and a share of the recorded kills is killed again."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from typing import Final

import pytest

from tests.mutants.equivalents import EQUIVALENTS
from tests.mutants.kills import kills, modules_of_tests, present, share
from tests.mutants.mutation import ROOT, Mutation, mutations, path_of
from tests.mutants.places import PLACES
from tests.support import shares
from tests.support.commit_seed import commit_seed

# Of each commit another one; `make mutants MUTANTS="--recorded 0"` tries all.
_SHARE: Final = 1
# Other code makes other mutations. Then `make mutants MUTANTS="PLACE --record"` records those of a place again.
_PRESENT_MIN: Final = 0.9


@pytest.mark.parametrize("place", PLACES)
def test_place_has_mutations_and_its_tests_exist(place: str) -> None:
    assert mutations(place, path_of(place.partition(":")[0]).read_text(encoding="utf-8"))
    assert modules_of_tests(place)
    for test in modules_of_tests(place):
        assert (ROOT / test).is_file(), test


def test_recorded_kills_are_of_the_code() -> None:
    recorded = kills()
    assert len({trial.mutation for trial in recorded}) == len(recorded) > 100
    assert len(present(recorded)) >= _PRESENT_MIN * len(recorded), "most mutations of killed.txt are gone"
    for trial in recorded:
        (test,) = trial.tests
        path, function = test.split("::")
        assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), test


def test_equivalent_mutations_have_a_reason_and_are_not_recorded() -> None:
    assert all(reason.endswith(".") for reason in EQUIVALENTS.values())
    equivalents = {Mutation.parse(name) for name in EQUIVALENTS}
    assert not equivalents & {trial.mutation for trial in kills()}
    assert {each.place for each in equivalents} <= PLACES.keys()


def test_share_is_the_same_for_the_same_seed() -> None:
    trials = kills()
    assert share(trials, 3, "a") == share(trials, 3, "a") != share(trials, 3, "b")
    assert len({trial.mutation for trial in share(trials, 3, "a")}) == 3
    assert len(share(trials, 100_000, "a")) == len(trials)


SOURCE: Final = '''
LOCK = select(heads).where(a, b).with_for_update()

class Store:
    def publish(self, held: int) -> None:
        """Publishes."""
        log.info("publishing")
        if held < self.claims and not self.closed:
            raise Fenced(held)
        try:
            self.commit(wait=True)
        except Lost:
            self.look_up()
'''


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        (
            "m:LOCK",
            """
            clause dropped: select(heads).where(a, b).with_for_update()
            part dropped: select(heads).where(a, b)
            part dropped: select(heads).where(a, b) #2
            clause dropped: select(heads).where(a, b)
            """,
        ),
        (
            "m:Store.publish",
            """
            false: if held < self.claims and not self.closed: raise Fenced(held)
            true: if held < self.claims and not self.closed: raise Fenced(held)
            part dropped: held < self.claims and not self.closed
            part dropped: held < self.claims and not self.closed #2
            boundary: held < self.claims
            negated: not self.closed
            dropped: raise Fenced(held)
            dropped: self.commit(wait=True)
            flipped: True
            not handled: except Lost: self.look_up()
            dropped: self.look_up()
            """,
        ),
    ],
)
def test_mutations_of_a_place(place: str, lines: str) -> None:
    listed = mutations(place, SOURCE)
    assert [f"{each.kind}: {each.text}" for each in listed] == lines.split("\n            ")[1:-1]
    changed = {each.applied(SOURCE) for each in listed}
    assert len(changed) == len(listed)
    assert ast.unparse(ast.parse(SOURCE)) not in changed
    assert [Mutation.parse(each.name) for each in listed] == listed


def test_mutation_of_a_place_that_is_gone_is_refused() -> None:
    with pytest.raises(LookupError, match="0 times"):
        mutations("m:Store.commit", SOURCE)
    with pytest.raises(LookupError, match="no mutation"):
        Mutation(place="m:LOCK", kind="flipped", text="True").applied(SOURCE)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a process without threads, and outside of the run of pytest that this is."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@shares.share(2)
def test_recorded_kills_of_a_share_are_killed() -> None:
    done = run("-m", "tests.mutants", "--recorded", str(_SHARE), "--seed", commit_seed())
    assert done.returncode == 0, done.stdout
    assert f"{_SHARE} killed, 0 survived, 0 broken of {_SHARE} mutations" in done.stdout


_THREE: Final = """
from msgspec import structs
from tests.mutants.hunt import Trial, hunt
from tests.mutants.mutation import Mutation

noticed = Mutation(
    place="app.kernel.commit.conflict:check_conflicts", kind="negated", text="not hits"
)
gone = structs.replace(noticed, text="no such text")
tests = ("tests/kernel/commit/test_conflict.py::test_commit_conflicts_with_changes_of_its_file_groups",)
others = ("tests/kernel/commit/test_write_plan.py",)
trials = [(noticed, others), (noticed, tests), (gone, tests)]
for report in hunt([Trial(mutation=mutation, tests=tests) for mutation, tests in trials]):
    print(report.verdict.value, report.test.rpartition(":")[2], end=",")
"""


@shares.share(4)
def test_mutation_that_no_test_notices_is_reported_as_survived() -> None:
    done = run("-c", _THREE)
    expected = "survived ,killed test_commit_conflicts_with_changes_of_its_file_groups,broken ,"
    assert (done.returncode, done.stdout) == (0, expected)
