"""The kernel reads no clock, no random bits and nothing of its process: its callers pass in what it needs.

import-linter knows packages and not the modules of Python, so this reads the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

KERNEL: Final = Path(__file__).parents[2] / "app" / "kernel"
IMPURE_MODULES: Final = frozenset(
    """
    asyncio concurrent contextvars ctypes fcntl glob http logging mmap multiprocessing os pathlib queue random sched
    secrets select shutil signal socket sqlite3 ssl subprocess tempfile threading time
    """.split()  # noqa: SIM905 one line a module says no more
)
IMPURE_CALLS: Final = frozenset({"open", "print", "input", "uuid1", "uuid4"})
CLOCKS: Final = frozenset({"now", "utcnow", "today"})
TIMES: Final = frozenset({"datetime", "date"})


def impurities(source: str) -> Iterator[str]:
    """What a module imports or calls that its result may depend on, beside its arguments."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case ast.Call(
                func=ast.Attribute(attr=call, value=ast.Name(id=owner) | ast.Attribute(attr=owner))
            ) if call in CLOCKS and owner in TIMES:
                yield f"line {node.lineno} calls {call}"
                continue
            case ast.Call(func=ast.Name(id=call) | ast.Attribute(attr=call)) if call in IMPURE_CALLS:
                yield f"line {node.lineno} calls {call}"
                continue
            case _:
                continue
        yield from (
            f"line {node.lineno} imports {name}" for name in modules if name.split(".")[0] in IMPURE_MODULES
        )


def test_kernel_is_pure() -> None:
    modules = sorted(KERNEL.rglob("*.py"))
    assert len(modules) > 100
    faults = {
        str(path.relative_to(KERNEL)): lines
        for path in modules
        if (lines := list(impurities(path.read_text(encoding="utf-8"))))
    }
    assert not faults, "clocks, random bits, locks, files: pass in what they give, or move the function up"


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("import os\n", "line 1 imports os"),
        ("import os.path\n", "line 1 imports os.path"),
        ("from time import monotonic\n", "line 1 imports time"),
        ("from concurrent.futures import Future\n", "line 1 imports concurrent.futures"),
        ("import datetime as dt\n\nmoment = dt.datetime.now(dt.UTC)\n", "line 3 calls now"),
        ("import uuid\n\nname = uuid.uuid4()\n", "line 3 calls uuid4"),
        ("from uuid import uuid4\n\nname = uuid4()\n", "line 3 calls uuid4"),
        ("text = open('a').read()\n", "line 1 calls open"),
    ],
)
def test_what_is_not_pure_is_reported(source: str, fault: str) -> None:
    assert list(impurities(source)) == [fault]


def test_ids_that_are_only_read_are_pure() -> None:
    assert not list(impurities("import uuid\n\nname = uuid.UUID('0' * 32)\n"))
