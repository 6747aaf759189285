"""`headwater init` as a process, on an embedded PostgreSQL."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.infra.runtime.postgres import EmbeddedPostgres
from tests.support.shares import share

ROOT = Path(__file__).parents[2]


@pytest.fixture
def postgres(tmp_path):
    with EmbeddedPostgres(tmp_path / "data", durable=False) as postgres:
        yield postgres


def init(postgres, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    environment |= {
        "HEADWATER_DATABASE_URL": postgres.url,
        "HEADWATER_MIGRATION_DATABASE_URL": postgres.owner_url,
        "HEADWATER_REDIS_URL": "redis://127.0.0.1:1/0",
    }
    command = [sys.executable, "-m", "clients.cli", "init", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@share(2)
def test_init_shows_the_key_once(postgres, tmp_path):
    first = init(postgres)
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[-1].startswith("hw_")
    again = init(postgres)
    assert again.returncode == 0, again.stderr
    assert "hw_" not in again.stdout
    # A key that the database does not know must not look like one.
    assert init(postgres, "--key-file", tmp_path / "key").returncode == 0
    assert not (tmp_path / "key").exists()


@share(2)
def test_init_writes_the_key_to_a_private_file_and_keeps_it(postgres, tmp_path):
    file = tmp_path / "operator.key"
    first = init(postgres, "--key-file", file)
    assert first.returncode == 0, first.stderr
    assert "hw_" not in first.stdout
    key = file.read_text()
    assert key.startswith("hw_")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert init(postgres, "--key-file", file).returncode == 0
    assert file.read_text() == key


def test_missing_database_is_an_error_without_a_traceback(postgres, tmp_path):
    postgres.stop()
    result = init(postgres)
    assert result.returncode == 1
    begins = "headwater: the server of HEADWATER_MIGRATION_DATABASE_URL does not answer: "
    assert result.stderr.startswith(begins)
    assert "Traceback" not in result.stderr
