"""Chromium for tests of pages: the one of this machine, or the one in packages of Debian below `.chromium`.

`python -m tests.support.chromium` brings it where there is none, and exits with 1 and the reason where it cannot. It
needs the standard library alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parents[2] / ".chromium"
"""What accounts that cannot install packages unpack Chromium to."""
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_PACKAGE: Final = "chromium"
_VARIABLE: Final = "CHROMIUM"
_QUIET: Final = ("-y", "-qq", "--no-install-recommends")


class ChromiumMissing(Exception):
    """There is no Chromium, and none can be brought here. The message has the reason."""


class Chromium(NamedTuple):
    """A browser: its program, and what its environment needs besides that of the tests."""

    path: Path
    environment: Mapping[str, str]

    @classmethod
    def here(cls) -> Chromium:
        """The browser of this machine: `CHROMIUM`, a program in `PATH`, or the one below `.chromium`.

        Raises ChromiumMissing.
        """
        if named := os.environ.get(_VARIABLE):
            return cls(Path(named), {})
        for name in _NAMES:
            if path := shutil.which(name):
                return cls(Path(path), {})
        # Not `usr/bin/chromium`: that script has the folders of an installation.
        unpacked = FOLDER / "usr" / "lib" / "chromium" / "chromium"
        if (FOLDER / "complete").exists() and unpacked.exists():
            return cls(unpacked, _environment(FOLDER))
        raise ChromiumMissing(
            "there is no Chromium: `make chromium` brings it on Debian; CHROMIUM=PATH names another one"
        )


def bring(seconds_max: float) -> Chromium:
    """The browser of this machine, brought from Debian if there is none. Raises ChromiumMissing.

    `seconds_max`: how long each download may take.
    """
    try:
        return Chromium.here()
    except ChromiumMissing:
        if shutil.which("apt-get") is None:
            raise ChromiumMissing(
                f"there is no Chromium, and no apt-get to bring it (this is {platform.system()}): "
                f"{_VARIABLE}=PATH names one"
            ) from None
    if os.geteuid() == 0:
        _install(seconds_max)
    else:
        _unpack(FOLDER, seconds_max)
    return Chromium.here()


def _install(seconds_max: float) -> None:
    """As root. The lists of packages are read again if those that are there do not lead to it."""
    download = ["apt-get", *_QUIET, "--download-only", "install", _PACKAGE]
    if not _succeeds(download, seconds_max):
        _run(["apt-get", "-qq", "update"], seconds_max)
        _run(download, seconds_max)
    # What is being installed is not stopped: a half of it would break the machine.
    _run(["apt-get", *_QUIET, "install", _PACKAGE], None)


def _unpack(folder: Path, seconds_max: float) -> None:
    """As any account: apt-get with lists and archives in folders of its own, then the content of the packages."""
    shutil.rmtree(folder, ignore_errors=True)
    lists, archives = folder / "apt" / "lists", folder / "apt" / "cache" / "archives"
    for each in (lists, archives):
        (each / "partial").mkdir(parents=True)
    own = [
        *("-o", f"Dir::State::lists={lists}"),
        *("-o", f"Dir::Cache={folder / 'apt' / 'cache'}"),
        *("-o", "Debug::NoLocking=1"),
    ]
    _run(["apt-get", *own, "-qq", "update"], seconds_max)
    _run(["apt-get", *own, *_QUIET, "--download-only", "install", _PACKAGE], seconds_max)
    for package in sorted(archives.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(folder)], None)
    shutil.rmtree(folder / "apt")
    (folder / "complete").touch()


def _environment(folder: Path) -> Mapping[str, str]:
    """Where an unpacked program finds its libraries and, on a machine without fonts, their settings."""
    machine = f"{platform.machine()}-linux-gnu"
    libraries = [
        folder / "usr" / "lib" / machine,
        folder / "lib" / machine,
        folder / "usr" / "lib" / "chromium",
    ]
    environment = {"LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}
    if not Path("/etc/fonts/fonts.conf").exists():
        environment["FONTCONFIG_SYSROOT"] = str(folder)
    return environment


def _succeeds(command: Sequence[str], seconds_max: float) -> bool:
    try:
        _run(command, seconds_max)
    except ChromiumMissing:
        return False
    return True


def _run(command: Sequence[str], seconds_max: float | None) -> None:
    """Raises ChromiumMissing for a command that fails, or that takes longer."""
    own = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    waiting = [
        "-o",
        "Acquire::Retries=0",
        "-o",
        "Acquire::http::Timeout=10",
        "-o",
        "Acquire::https::Timeout=10",
    ]
    given = [command[0], *(waiting if command[0] == "apt-get" else ()), *command[1:]]
    try:
        done = subprocess.run(
            given, env=own, capture_output=True, text=True, timeout=seconds_max, check=False
        )
    except subprocess.TimeoutExpired:
        raise ChromiumMissing(f"`{' '.join(command)}` did not end in {seconds_max:g} s") from None
    # `apt-get update` succeeds where it has reached no server.
    if done.returncode:
        raise ChromiumMissing(f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}")


def main() -> int:
    """The command. Returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="how long each download may take")
    chosen = parser.parse_args()
    try:
        bring(chosen.seconds)
    except ChromiumMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
