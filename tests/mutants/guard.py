"""A guard: a piece of code that no other code repeats, and the tests that fail without it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).parents[2]


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """`text`, found once in `module`, is replaced by `without`. Each of `tests` is `module::function`, and fails then.

    Modules go by their dotted names.
    """

    name: str
    module: str
    text: str
    without: str = ""
    tests: tuple[str, ...]

    def path(self, root: Path = ROOT) -> Path:
        """The file of the module."""
        return path_of(self.module, root)

    def taken_out(self, source: str) -> str:
        """The module's source without the guard. Raises ValueError unless the guard is found there once."""
        found = source.count(self.text)
        if found != 1:
            raise ValueError(f"{self.name}: its text is found {found} times in {self.module}, not once")
        without = source.replace(self.text, self.without)
        ast.parse(without)
        return without

    def test_ids(self, root: Path = ROOT) -> list[str]:
        """The tests as pytest names them."""
        found = []
        for test in self.tests:
            module, function = test.split("::")
            found.append(f"{path_of(module, root).relative_to(root)}::{function}")
        return found


def path_of(module: str, root: Path = ROOT) -> Path:
    """The file of a module."""
    return root.joinpath(*module.split(".")).with_suffix(".py")
