"""The functions, methods and queries of the commit path, and the modules of tests that must notice a change of them.

A line of `places.txt` is `module:name | tests …`: a function, a method as `Class.method`, or a value of a module, and
modules of tests below `tests`, in the order in which they run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PLACES: Final = dict(
    line.split(" | ") for line in Path(__file__).with_name("places.txt").read_text("utf-8").splitlines()
)
