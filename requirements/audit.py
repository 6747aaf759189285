"""Check the pinned packages of the service for known vulnerabilities.

pip-audit requests them from PyPI, so this needs the network. It ends with 1 if a package has a vulnerability, and with
2 if packages could not be checked.
"""

import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ENVIRONMENT = FOLDER.parent / ".venv-audit"
AUDITED = FOLDER / "runtime.txt"
# What pip-audit reports if the service has no answer for a package, or cannot be reached.
UNCHECKED = ("could not be audited", "not found on PyPI", "ConnectionError", "Failed to connect", "timed out")


def main() -> int:
    """Installs pip-audit from its lock, and runs it."""
    venv.create(ENVIRONMENT, with_pip=True, symlinks=True)
    python = str(ENVIRONMENT / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--require-hashes", "-r", str(FOLDER / "audit.txt")], check=True)
    options = [
        "--strict",
        "--disable-pip",
        "--require-hashes",
        "--progress-spinner",
        "off",
        "--timeout",
        "30",
    ]
    command = [python, "-m", "pip_audit", *options, "--requirement", str(AUDITED)]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    report = found.stdout + found.stderr
    if found.returncode and any(sign in report for sign in UNCHECKED):
        print(report.strip()[-1_000:], file=sys.stderr)
        print(
            "audit: PyPI's vulnerability service has no answer; the packages are NOT checked", file=sys.stderr
        )
        return 2
    print(report.strip())
    return found.returncode


if __name__ == "__main__":
    sys.exit(main())
