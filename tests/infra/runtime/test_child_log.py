"""The log file of a child of the supervisor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.infra.runtime.child_log import ChildLog


def _logged(log: ChildLog, text: str) -> None:
    """Logs the output of a child, and closes the log."""
    with subprocess.Popen(
        [sys.executable, "-c", f"print({text!r})"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        log.follow(child)
        child.wait(30)
    log.close()


def test_lines_are_written_as_they_are(tmp_path: Path) -> None:
    log = ChildLog(tmp_path / "logs", "api")
    _logged(log, "one\ntwo")
    assert (tmp_path / "logs" / "api.log").read_text() == "one\ntwo\n"


def test_lines_that_a_full_disk_loses_are_reported_once_a_minute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "api.log").symlink_to("/dev/full")
    reports: list[str] = []
    log = ChildLog(tmp_path, "api", reports.append)
    _logged(log, "one\ntwo\nthree")
    assert len(reports) == 1
    assert reports[0].endswith("are lost: [Errno 28] No space left on device")
    # The traceback of `logging` for each line.
    assert capsys.readouterr().err == ""
