"""Build the project's environment from the pinned, hashed requirements; do nothing when it matches them.

Uses the standard library only: it runs before anything is installed. Where packages come from is pip's own
configuration, which this script leaves alone.
"""

import argparse
import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The packages of this repository. The client is last: an environment may have a server that brought the command
# `headwater`, which the client brings now, and which goes with that server.
PACKAGES = {"headwater": ROOT, "headwater-client": ROOT / "clients" / "python"}


def fingerprint(locks: list[Path]) -> str:
    """Digest of what decides what the environment holds: the locks, the metadata of our packages, and their place."""
    digest = hashlib.sha256(str(ROOT).encode())
    for path in [*locks, *(folder / "pyproject.toml" for folder in PACKAGES.values())]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def interpreter(environment: Path) -> Path:
    """The environment's Python. It is a link, so it exists only while the Python that it points to does."""
    return environment / "bin" / "python"


def build(environment: Path, locks: list[Path], packages: dict[str, Path]) -> None:
    """Fill the environment, each lock in the order given, then our packages; create it unless it is there.

    One that is there is brought up to date in place: processes that run from it keep running.
    """
    if not interpreter(environment).exists():
        venv.create(environment, with_pip=True, clear=True, symlinks=True)
    pip = [str(interpreter(environment)), "-m", "pip", "--disable-pip-version-check"]
    # The locks are complete, so nothing is left to resolve; building without isolation keeps source
    # distributions to the pinned build tools of the first lock.
    install = [*pip, "install", "--quiet", "--no-deps", "--no-build-isolation"]
    for lock in locks:
        print(f"setup: installing {lock}", flush=True)
        subprocess.run([*install, "--require-hashes", "-r", str(lock)], check=True)
    for name, folder in packages.items():
        print(f"setup: installing {name}, editable", flush=True)
        # `compat` adds the folder to the path; without it only an import hook knows it, which type checkers do not run.
        mode = ["--config-settings", "editable_mode=compat"]
        subprocess.run([*install, *mode, "--editable", str(folder)], check=True)
    subprocess.run([*pip, "check"], check=True, stdout=subprocess.DEVNULL)


def is_built(environment: Path, stamp: Path, wanted: str) -> bool:
    """Whether the last build that came to its end was one of the same requirements."""
    return interpreter(environment).exists() and stamp.exists() and stamp.read_text() == wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--locks-only", action="store_true", help="without the packages of this repository")
    parser.add_argument("locks", type=Path, nargs="+")
    arguments = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036 - an older python3 may be first on PATH
        sys.exit(
            f"Headwater needs Python 3.11 or later; {sys.executable} is {sys.version.split()[0]}. "
            "Name another with: make PYTHON=python3.12 setup"
        )
    stamp = arguments.venv / "requirements.sha256"
    wanted = fingerprint(arguments.locks)
    if is_built(arguments.venv, stamp, wanted):
        return
    # Two makes at once would fill one environment from both sides; the second waits, and finds it done.
    folder = os.open(ROOT / "requirements", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    if is_built(arguments.venv, stamp, wanted):
        return
    try:
        build(arguments.venv, arguments.locks, {} if arguments.locks_only else PACKAGES)
    except subprocess.CalledProcessError as failure:
        sys.exit(f"setup: this command failed with exit code {failure.returncode}: {' '.join(failure.cmd)}")
    stamp.write_text(wanted)


if __name__ == "__main__":
    main()
