"""Programs of tests that are published on Maven Central, as the jars of a pom."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

_DOWNLOAD_SECONDS_MAX: Final = 300


class MavenFailed(Exception):
    """Nothing can be downloaded here. The message has the reason."""


def install(pom: Path, folder: Path, name: str, finish: Callable[[], None] = lambda: None) -> None:
    """Downloads the jars of a pom to the folder unless they are there; `finish` runs once they are.

    Raises MavenFailed, whose message has the name.
    """
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = folder / "pom.xml"
        if complete.exists() and complete.read_bytes() == pom.read_bytes():
            return
        if shutil.which("mvn") is None:
            raise MavenFailed(f"{name} is not installed, and there is no Maven (mvn) to download it")
        for jar in folder.glob("*.jar"):
            jar.unlink()
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        command = ["mvn", "--batch-mode", "--quiet", "--file", str(pom), *goal]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS_MAX, check=False
            )
        except subprocess.TimeoutExpired:
            raise MavenFailed(f"Maven did not end in {_DOWNLOAD_SECONDS_MAX} s") from None
        if done.returncode:
            raise MavenFailed(f"Maven cannot download {name}: {done.stdout[-500:]}{done.stderr[-500:]}")
        finish()
        shutil.copyfile(pom, complete)
