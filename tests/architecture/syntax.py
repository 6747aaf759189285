"""The syntax trees of the repository's modules. Each is parsed once for all rules of a process."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


@cache
def tree_of(path: Path) -> ast.Module:
    return parsed(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module."""
    return tuple(ast.walk(tree_of(path)))


def parsed(source: str) -> ast.Module:
    """The tree of a source.

    Trees have many nodes and no circles. Without the pause and the freeze, the collector of garbage would go through
    all of them again and again, which takes five times as long as to parse them.
    """
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.freeze()
        gc.enable()
