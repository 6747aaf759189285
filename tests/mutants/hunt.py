"""Puts mutations into copies of the tree, one at a time in each, and runs the tests that must fail then.

Each run of pytest is a fork of this process, which has imported what the project depends on and nothing of the project
itself: that takes longer than most of the tests. So this must run in a process without threads.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

import msgspec
import pytest

from tests.mutants.mutation import ROOT, Mutation, path_of
from tests.support.shares import VARIABLE

# For one run: with a mutation a test may wait for ever, which is reported as broken.
_SECONDS_MAX: Final = 120
_LINES_SHOWN: Final = 25
_IMPORTED_ONCE: Final = (
    "alembic.config",
    "httpx2",
    "hypothesis",
    "litestar",
    "psycopg",
    "pyarrow.compute",
    "pyarrow.fs",
    "pyarrow.ipc",
    "pyarrow.parquet",
    "sqlalchemy.dialects.postgresql.psycopg",
    "xdist.scheduler",
)
# Plugins of pytest are among what is imported once, so that it cannot rewrite their assertions; theirs do not matter.
_PYTEST: Final = (
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "-W",
    "ignore:Module already imported:pytest.PytestAssertRewriteWarning",
)
_OF_THE_PROJECT: Final = {"app", "clients", "migrations", "tests", "workers"}


class Verdict(str, Enum):
    """The outcome of the tests of a mutation."""

    KILLED = "killed"
    SURVIVED = "survived"
    # The code has no such mutation, or pytest could not run the tests, or not to their end.
    BROKEN = "broken"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A mutation, and the tests of which one must fail: modules of tests or single tests, as pytest names them."""

    mutation: Mutation
    tests: tuple[str, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a trial."""

    trial: Trial
    verdict: Verdict
    test: str = ""
    """The test that failed, without the parameters of its case."""
    detail: str = ""
    """The end of what pytest has printed, unless the mutation is killed."""


class Tree:
    """A copy of the repository in a folder of its own, in which one run of tests goes on at a time."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self._log = folder / "log"
        self._failure = folder / "failure"

    @classmethod
    @contextmanager
    def copied(cls) -> Iterator[Tree]:
        """All files that git knows or would add."""
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        with TemporaryDirectory(prefix="headwater-mutants-") as folder:
            tree = cls(Path(folder))
            for name in filter(None, listing.split("\0")):
                if (ROOT / name).is_file():
                    target = tree.root / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, target)
            yield tree

    def start(self, tests: Sequence[str], seconds_max: int = 0) -> int:
        """Begins to run tests, up to the first that fails; returns the id of the process."""
        process = os.fork()
        if process == 0:
            self._run(tests, seconds_max)
        return process

    def output(self) -> str:
        """The end of what the last run has printed."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-_LINES_SHOWN:])

    def failure(self) -> str:
        """The first test that failed in the last run."""
        return self._failure.read_text(encoding="utf-8")

    def change(self, mutation: Mutation) -> None:
        """Raises LookupError, OSError."""
        path = path_of(mutation.module, self.root)
        self._put(path, mutation.applied(path.read_text(encoding="utf-8")))

    def restore(self, mutation: Mutation) -> None:
        """Makes the module of a mutation what it is in the repository."""
        source = path_of(mutation.module).read_text(encoding="utf-8")
        self._put(path_of(mutation.module, self.root), source)

    def _put(self, path: Path, source: str) -> None:
        path.write_text(source, encoding="utf-8")
        # A compiled module is taken for the source of the same size and second.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def _run(self, tests: Sequence[str], seconds_max: int) -> NoReturn:
        """Pytest, in a process of its own that knows the project by this tree only."""
        code = 3
        try:
            log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.chdir(self.root)
            for name in [name for name in sys.modules if name.split(".")[0] in _OF_THE_PROJECT]:
                del sys.modules[name]
            sys.path[:] = [str(self.root), *(path for path in sys.path if path not in ("", str(ROOT)))]
            os.environ |= {"PYTHONPATH": str(self.root), VARIABLE: "long"}
            # As if interrupted, so that the servers of the tests are stopped.
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.alarm(seconds_max)
            calls = _Calls()
            code = int(pytest.main([*_PYTEST, *tests], plugins=[calls]))
            if code == 1 and not calls.failure:
                code = 3
            self._failure.write_text(calls.failure, encoding="utf-8")
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


class _Calls:
    """A plugin of pytest: the first test that has failed, rather than what sets it up."""

    def __init__(self) -> None:
        self.failure = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.failed and not self.failure:
            self.failure = report.nodeid.partition("[")[0]


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """A trial under way."""

    trial: Trial
    tree: Tree


def warm() -> None:
    """Imports what each run of tests would import otherwise."""
    for name in _IMPORTED_ONCE:
        import_module(name)


def passing(trials: Iterable[Trial]) -> str | None:
    """None if all tests pass without a mutation, else what pytest printed.

    Then it means nothing that they fail.
    """
    with Tree.copied() as tree:
        tests = sorted({test for trial in trials for test in trial.tests})
        _, status = os.waitpid(tree.start(tests), 0)
        return tree.output() if os.waitstatus_to_exitcode(status) else None


def hunt(trials: Iterable[Trial], processes: int = 1) -> Iterator[Report]:
    """Makes each trial; a report for each, as it ends."""
    waiting = iter(trials)
    running: dict[int, _Run] = {}
    with ExitStack() as copies:
        free = [copies.enter_context(Tree.copied()) for _ in range(processes)]
        while True:
            while free and (trial := next(waiting, None)) is not None:
                tree = free.pop()
                try:
                    tree.change(trial.mutation)
                except (LookupError, OSError) as error:
                    free.append(tree)
                    yield Report(trial=trial, verdict=Verdict.BROKEN, detail=str(error))
                    continue
                running[tree.start(trial.tests, _SECONDS_MAX)] = _Run(trial=trial, tree=tree)
            if not running:
                return
            process, status = os.wait()
            run = running.pop(process)
            report = _report(run, os.waitstatus_to_exitcode(status))
            run.tree.restore(run.trial.mutation)
            free.append(run.tree)
            yield report


def _report(run: _Run, code: int) -> Report:
    if code == 1:
        return Report(trial=run.trial, verdict=Verdict.KILLED, test=run.tree.failure())
    verdict = Verdict.SURVIVED if code == 0 else Verdict.BROKEN
    return Report(trial=run.trial, verdict=verdict, detail=run.tree.output())
