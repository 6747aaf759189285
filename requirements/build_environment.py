"""Build the project's environment from the pinned, hashed requirements; do nothing when it matches them.

Uses the standard library only: it runs before anything is installed. Where packages come from is pip's own
configuration, which this script leaves alone.
"""

import argparse
import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def fingerprint(paths: list[Path]) -> str:
    """Digest of all that decides what the environment holds: locks, metadata, Python and place."""
    digest = hashlib.sha256(f"{sys.version_info[:3]} {ROOT}".encode())
    for path in [*paths, ROOT / "pyproject.toml", ROOT / "requirements" / "runtime.in", Path(__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def build(environment: Path, locks: list[Path]) -> None:
    """Create the environment anew and fill it, each lock in the order given, then the project itself."""
    venv.create(environment, with_pip=True, clear=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    # The locks are complete, so nothing is left to resolve; building without isolation keeps source
    # distributions to the pinned build tools of the first lock.
    install = [*pip, "install", "--quiet", "--no-deps", "--no-build-isolation"]
    for lock in locks:
        print(f"setup: installing {lock}", flush=True)
        subprocess.run([*install, "--require-hashes", "-r", str(lock)], check=True)
    print("setup: installing headwater itself, editable", flush=True)
    subprocess.run([*install, "--editable", str(ROOT)], check=True)
    subprocess.run([*pip, "check"], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("locks", type=Path, nargs="+")
    arguments = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever runs make may have an older python3 first on PATH
        sys.exit(
            f"Headwater needs Python 3.11 or later; {sys.executable} is {sys.version.split()[0]}. "
            "Name another with: make PYTHON=python3.12 setup"
        )
    stamp = arguments.venv / "requirements.sha256"
    wanted = fingerprint(arguments.locks)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    try:
        build(arguments.venv, arguments.locks)
    except subprocess.CalledProcessError as failure:
        sys.exit(f"setup: this command failed with exit code {failure.returncode}: {' '.join(failure.cmd)}")
    stamp.write_text(wanted)


if __name__ == "__main__":
    main()
