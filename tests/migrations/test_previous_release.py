"""The code of the release before the newest migration works on the newest schema, until its processes are replaced.

That code is taken from the history of the repository, and runs its own tests of the repositories, with the migrations
of this one. `make test-skew` runs all of them, CI one module.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import pytest

from app.tenants.bootstrap import revisions

ROOT: Final = Path(__file__).parents[2]
MIGRATIONS: Final = ROOT / "migrations"
ALL: Final = bool(os.environ.get("SKEW"))
# In CI: commits, their conflicts, and what readers of a version see.
TESTS: Final = (
    ("timeline", "jobs", "catalog", "consumers", "changes")
    if ALL
    else ("timeline/repository/test_timeline_store.py",)
)


def git(*words: str) -> str:
    result = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"the history of the repository is not there: git {words[0]}: {result.stderr.strip()}")
    return result.stdout.strip()


def commit_before(migration: str) -> str:
    """The commit before that which added the migration to the main line; the latest one if none has yet."""
    added = git("log", "--first-parent", "-m", "--diff-filter=A", "--format=%H", "-1", "--", migration)
    if not added:
        if git("rev-parse", "--is-shallow-repository") == "true":
            pytest.skip(f"the history of the repository is shallow: it does not show who added {migration}")
        return git("rev-parse", "HEAD")
    return git("rev-parse", "--verify", f"{added}^")


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The previous release, with the migrations of this one."""
    folder = tmp_path_factory.mktemp("previous")
    [newest] = MIGRATIONS.glob(f"versions/{revisions()[-1]}_*.py")
    archive = folder / "release.tar"
    git("archive", "--output", str(archive), commit_before(str(newest.relative_to(ROOT))))
    release = folder / "release"
    with tarfile.open(archive) as files:
        files.extractall(release, filter="data")
    assert not (release / newest.relative_to(ROOT)).exists()
    shutil.rmtree(release / "migrations")
    shutil.copytree(MIGRATIONS, release / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    return release


@pytest.mark.parametrize("tests", TESTS)
def test_previous_release_works_on_the_newest_schema(previous: Path, tests: str) -> None:
    place = previous / "tests" / tests
    chosen = place if place.suffix else place / "repository"
    # Nothing of this release is imported instead.
    environment = {**os.environ, "PYTHONPATH": f"{previous}:{previous / 'clients' / 'python'}"}
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(chosen)]
    result = subprocess.run(
        command, cwd=previous, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert result.returncode == 0, result.stdout[-8_000:] + result.stderr[-2_000:]
