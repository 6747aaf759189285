"""`headwater init` as a process, on an embedded PostgreSQL."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from app.infra.runtime.postgres import EmbeddedPostgres
from tests.support.shares import share

ROOT = Path(__file__).parents[2]


@pytest.fixture
def postgres(tmp_path):
    with EmbeddedPostgres(tmp_path / "data", durable=False) as postgres:
        yield postgres


def init(postgres, *arguments):
    return command(postgres, "init", *arguments)


def command(postgres, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    environment |= {
        "HEADWATER_DATABASE_URL": postgres.url,
        "HEADWATER_MIGRATION_DATABASE_URL": postgres.owner_url,
    }
    line = [sys.executable, "-m", "clients.cli", *map(str, arguments)]
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


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


@share(2)
def test_lost_operator_key_is_replaced_by_another_one(postgres, tmp_path):
    first = init(postgres).stdout.splitlines()[-1]
    file = tmp_path / "operator.key"
    again = init(postgres, "--new-operator-key", "--key-file", file)
    assert again.returncode == 0, again.stderr
    assert file.read_text().strip() not in ("", first)
    with psycopg.connect(postgres.owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM api_keys").fetchall() == [(2,)]
    refused = init(postgres, "--new-operator-key", "--key-file", file)
    assert refused.returncode == 1
    assert "has a key already" in refused.stderr


@share(2)
def test_verification_of_an_empty_database_is_refused_with_one_sentence(postgres):
    result = command(postgres, "server", "verify")
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "run `headwater init`" in result.stderr


def test_missing_database_is_an_error_without_a_traceback(postgres, tmp_path):
    postgres.stop()
    result = init(postgres)
    assert result.returncode == 1
    begins = "headwater: the server of HEADWATER_MIGRATION_DATABASE_URL does not answer: "
    assert result.stderr.startswith(begins)
    assert "Traceback" not in result.stderr
