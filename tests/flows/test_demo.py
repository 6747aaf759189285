"""`headwater demo flights` as users run it, on two days of the year."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.stack
def test_demo_succeeds_and_keeps_its_data_directory():
    # Not pytest's own folder, which is closed to the account that Postgres runs as.
    with TemporaryDirectory(prefix="headwater-tests-") as directory:
        data = Path(directory) / "kept"
        done = subprocess.run(
            [sys.executable, "-m", "clients.cli", "demo", "flights", "--days", "2", "--keep", str(data)],
            cwd=ROOT,
            # A demo works on servers of its own, whatever the shell is set up for.
            env={
                **os.environ,
                "HEADWATER_DATABASE_URL": "postgresql://nowhere:1/none",
                "HEADWATER_PORT": "none",
            },
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "fold(feed) = the snapshot read through /rows" in done.stdout
        assert "fold(feed) = the file" in done.stdout
        assert (data / "operator.key").exists()
        assert not (data / "headwater.json").exists()
