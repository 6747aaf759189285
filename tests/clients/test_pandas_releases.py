"""The tests of data frames with the release of pandas that the environment does not have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.support.shares import share

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "pandas-3.txt"
TESTS = ("test_client_arrow.py", "test_client_pandas.py")
OUT_OF_REACH = ("Failed to fetch", "error sending request", "dns error", "Could not connect")


@pytest.fixture(scope="module")
def pandas_3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pandas 3, which uses the other packages of the environment."""
    folder = tmp_path_factory.mktemp("pandas")
    uv = [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--python", sys.executable]
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--target", folder, "-r", LOCK]
    installed = subprocess.run([*uv, *options], capture_output=True, text=True, timeout=240, check=False)
    if any(sign in installed.stderr for sign in OUT_OF_REACH):
        pytest.skip("the package registry cannot be reached")
    assert installed.returncode == 0, installed.stderr
    return folder


@share(3)
def test_data_frames_of_pandas_3_are_written_and_read(pandas_3: Path) -> None:
    assert pd.__version__.startswith("2."), "the tests themselves run with pandas 2"
    program = (
        "import sys, pandas, pytest; assert pandas.__version__.startswith('3.'), pandas.__file__; "
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    files = [str(Path(__file__).with_name(name)) for name in TESTS]
    # A run of its own must not remove the folders of this one.
    own = ["-q", "-p", "no:cacheprovider", "--basetemp", str(pandas_3 / "tests")]
    ran = subprocess.run(
        [sys.executable, "-c", program, *own, *files],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(pandas_3)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-5_000:]}\n{ran.stderr[-2_000:]}"
