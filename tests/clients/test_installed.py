"""The service from its wheels alone: no clone, no index, an empty folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headwater_client import Headwater, NewDataset, NewField
from requirements.build_packages import WHEELS, build_wheel
from tests.support.left_out import left_out

ROOT = Path(__file__).parents[2]
OURS = ("headwater", "__editable__")
READY_SECONDS_MAX = 180


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """An empty folder. pytest's own is closed to the account that Postgres runs as."""
    with TemporaryDirectory(prefix="headwater-tests-") as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def environment(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheels. The packages of others are links to those of this environment."""
    wheels = tmp_path_factory.mktemp("wheels")
    for package in WHEELS:
        build_wheel(package, wheels, "1700000000")
    environment = folder / "environment"
    venv.create(environment, with_pip=True, symlinks=True)
    [site] = (environment / "lib").glob("*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(OURS) and not (site / path.name).exists():
            (site / path.name).symlink_to(path)
    pip = [environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run(
        [*pip, "--no-index", "--find-links", wheels, "headwater[embedded]"],
        check=True,
        env={"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull},
    )
    return environment


@contextmanager
def running(environment: Path, folder: Path) -> Iterator[Headwater]:
    """A service that was started in a folder; it is stopped at the end."""
    variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [environment / "bin" / "headwater", "up", "--port", "0"],
            cwd=folder,
            env=variables,
            stdout=log,
            stderr=log,
        )
    note = folder / ".headwater" / "headwater.json"
    try:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not note.exists():
            assert process.poll() is None, (folder / "up.log").read_text()
            assert time.monotonic() < deadline, (folder / "up.log").read_text()
            time.sleep(0.1)
        found = json.loads(note.read_text())
        with Headwater(found["url"], found["api_key"]) as headwater:
            yield headwater
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=90) == 0


@left_out("DIST", "test-dist")
def test_the_service_runs_from_its_wheels_in_an_empty_folder(environment: Path, folder: Path) -> None:
    work = Path(tempfile.mkdtemp(dir=folder))
    modules = "import app, clients, headwater_client, migrations, workers as w; print(w.__file__)"
    found = subprocess.run(
        [environment / "bin" / "python", "-c", modules],
        cwd=work,
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(found.stdout).is_relative_to(environment)
    assert not Path(found.stdout).is_relative_to(ROOT)
    with running(environment, work) as headwater:
        fields = (NewField(name="id", type="int64"), NewField(name="state", type="string"))
        orders = headwater.create_dataset(NewDataset(name="orders", fields=fields, record_key=("id",)))
        job = headwater.write_rows(orders, [{"id": 1, "state": "new"}], wait=120)
        assert job.state == "succeeded"
        assert list(headwater.rows(orders)) == [{"id": 1, "state": "new"}]


@left_out("DIST", "test-dist")
def test_the_openapi_document_is_that_of_the_clone(environment: Path, folder: Path) -> None:
    work = Path(tempfile.mkdtemp(dir=folder))
    printed = subprocess.run(
        [environment / "bin" / "headwater", "openapi"],
        cwd=work,
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(printed.stdout) == json.loads((ROOT / "openapi" / "openapi.json").read_text())
