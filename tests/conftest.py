"""What all tests share: their order, their division between processes, and the fixtures of those that need servers.

Where tests run in several processes, those that start Spark or the whole service run in one of them, one after another,
and first, since they take longest; each other module runs as a whole, in whichever is free. Those of pure rules are
the last.

A test of pure rules starts within two seconds, since this file imports nothing of the service. The first module that is
collected outside of the folders of pure tests loads the fixtures of the servers.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.support.examples import a_third_of

pytest_plugins = [
    "tests.support.complete_runs",
    "tests.support.left_out",
    "tests.support.pace",
    "tests.support.permanent_objects",
    "tests.support.temporary_files",
]

# An example takes as long as it takes: a busy machine is no fault.
settings.register_profile("headwater", deadline=None, max_examples=a_third_of(100))
settings.load_profile("headwater")

TESTS: Final = Path(__file__).parent
_HEAVY: Final = frozenset({"cluster", "conformance", "console", "engine", "flows", "spark"})
# Their tests need no server, apart from one module.
_PURE: Final = frozenset({"architecture", "bench", "docs", "kernel"})
_SERVED: Final = TESTS / "docs" / "test_document_examples.py"
# One Postgres server, one broker and so on for each process that tests; one database for each module.
_FIXTURES: Final = (
    "tests.support.server_fixtures",
    "tests.support.service_fixtures",
    "tests.support.store_fixtures",
    "tests.support.kafka.fixtures",
    "tests.support.mariadb.fixtures",
)


class _ByModule(LoadScopeScheduling):
    """Hands out tests by module, those of the heavy folders as one."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.split("::")[0]
        return "heavy" if Path(module).parts[1] in _HEAVY else module


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByModule | None:
    """Who gives tests to the processes; None for another way to distribute them (`--dist`)."""
    return _ByModule(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Loads the fixtures of the servers for a module that may need them."""
    if not _is_pure(module_path):
        plugins = parent.config.pluginmanager
        for name in _FIXTURES:
            if not plugins.has_plugin(name):
                plugins.register(import_module(name), name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the slow ones first, and the pure ones last: with short modules at the end both processes end together."""
    items.sort(key=lambda item: (_folder(item.path) not in _HEAVY, _is_pure(item.path)))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """The id of a value: bytes are named by their argument, since compressed ones can differ with the time of day."""
    return argname if isinstance(val, bytes) else None


def _is_pure(module: Path) -> bool:
    """Whether the tests of a module need no server."""
    return _folder(module) in _PURE and module != _SERVED


def _folder(path: Path) -> str:
    """The name of the folder in `tests` that the file is in."""
    return path.relative_to(TESTS).parts[0]
