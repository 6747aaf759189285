"""`make test` writes the commit that passed to `.tested`: only of a clean tree, and only if everything has passed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.syntax import ROOT

TOOLS = ("lint-imports", "mypy", "python", "ruff", "uv")


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A repository with the Makefile, and tools beside it that do nothing but what a test says."""

    root: Path
    tools: Path

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
        return subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, check=True
        ).stdout.strip()

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        return self.git("rev-parse", "HEAD")

    def tool(self, name: str, script: str) -> None:
        path = self.tools / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def test(self) -> int:
        """The exit code of `make test`."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        return subprocess.run(
            ["make", "test", "PYTHON=true", f"VENV={self.tools}"],
            cwd=self.root,
            env=environment | {"VERSITYGW": "here"},
            capture_output=True,
            check=False,
        ).returncode

    @property
    def tested(self) -> str | None:
        file = self.root / ".tested"
        return file.read_text() if file.exists() else None


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(root=tmp_path / "tree", tools=tmp_path / "tools")
    tree.root.mkdir()
    (tree.tools / "bin").mkdir(parents=True)
    for name in TOOLS:
        tree.tool(name, "exit 0")
    for name in ("Makefile", ".gitignore"):
        shutil.copy(ROOT / name, tree.root / name)
    tree.git("init", "--quiet")
    return tree


def test_commit_that_passed_is_written(tree: Tree) -> None:
    commit = tree.commit()
    assert tree.test() == 0
    assert tree.tested == f"{commit}\n"
    assert tree.git("status", "--porcelain") == ""


@pytest.mark.parametrize("tool", ["ruff", "mypy", "lint-imports", "python"])
def test_commit_that_failed_is_not_written(tree: Tree, tool: str) -> None:
    tree.commit()
    tree.tool(tool, "exit 1")
    assert tree.test() != 0
    assert tree.tested is None


def test_tree_with_changes_is_not_written(tree: Tree) -> None:
    tree.commit()
    (tree.root / "new.py").write_text("")
    assert tree.test() == 0
    assert tree.tested is None


@pytest.mark.parametrize(
    "during", ["touch new.py", "git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m b"]
)
def test_tree_that_changes_during_the_tests_is_not_written(tree: Tree, during: str) -> None:
    tree.commit()
    tree.tool("python", during)
    assert tree.test() == 0
    assert tree.tested is None
