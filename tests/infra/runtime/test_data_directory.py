"""One supervisor per data folder; what it writes there is private and whole."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.infra.runtime.data_directory import DataDirectory, DataDirectoryError
from app.infra.runtime.private_file import kept_secret, write_private


def test_directory_in_use_is_refused_with_its_holder(tmp_path):
    with DataDirectory(tmp_path), pytest.raises(DataDirectoryError, match=rf"pid {os.getpid()}\) is running"):
        DataDirectory(tmp_path).__enter__()
    with DataDirectory(tmp_path):
        pass


def test_killed_holder_leaves_no_lock_and_its_note_is_removed(tmp_path):
    program = f"""
import os, signal
from pathlib import Path
from app.infra.runtime.data_directory import DataDirectory
DataDirectory(Path({str(tmp_path)!r})).__enter__().announce("http://127.0.0.1:1", "hw_k")
os.kill(os.getpid(), signal.SIGKILL)
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[3], check=False)
    assert result.returncode == -9
    assert (tmp_path / "headwater.json").exists()
    with DataDirectory(tmp_path) as directory:
        assert not directory.note_file.exists()


def test_note_is_private_complete_and_removed_at_the_end(tmp_path):
    with DataDirectory(tmp_path / "new") as directory:
        directory.announce("http://127.0.0.1:8080", "hw_key")
        assert json.loads(directory.note_file.read_text()) == {
            "url": "http://127.0.0.1:8080",
            "api_key": "hw_key",
            "pid": os.getpid(),
        }
        assert stat.S_IMODE(directory.note_file.stat().st_mode) == 0o600
    assert not directory.note_file.exists()


def test_settings_are_private_and_exist_only_while_the_service_runs(tmp_path):
    variables = {"HEADWATER_DATABASE_URL": "postgresql://u:p'$w@h/d", "JAVA_HOME": "/opt/a b"}
    with DataDirectory(tmp_path) as directory:
        directory.write_settings(variables)
        assert DataDirectory(tmp_path).settings() == variables
        assert stat.S_IMODE(directory.settings_file.stat().st_mode) == 0o600
        shell = f"set -a; . {directory.settings_file}; printenv HEADWATER_DATABASE_URL JAVA_HOME"
        printed = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
        assert printed.splitlines() == list(variables.values())
    with pytest.raises(DataDirectoryError, match=r"headwater\.env: No such file.*`headwater up` writes it"):
        directory.settings()


def test_path_other_than_a_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirectoryError, match="cannot use"):
        DataDirectory(tmp_path / "file").__enter__()


def test_secret_is_created_once_and_survives_a_failed_write(tmp_path, monkeypatch):
    secret = kept_secret(tmp_path / "s")
    assert kept_secret(tmp_path / "s") == secret
    assert len(secret) >= 43

    def full(_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_private(tmp_path / "s", "new")
    assert (tmp_path / "s").read_text() == secret
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
