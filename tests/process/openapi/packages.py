"""Packages that tests install from registries, pinned by hash."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

OUT_OF_REACH = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH")


def install(project: Path, folder: Path) -> None:
    """Copies an npm project into a folder and installs what its lock pins. Skips the test without a registry."""
    ignored = shutil.ignore_patterns("node_modules", "generated", "build")
    shutil.copytree(project, folder, ignore=ignored, dirs_exist_ok=True)
    installed = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if installed.returncode != 0 and any(code in installed.stderr for code in OUT_OF_REACH):
        pytest.skip("the npm registry is out of reach")
    assert installed.returncode == 0, installed.stderr


def pinned_packages(project: Path) -> int:
    """How many packages the lock of an npm project pins: all by hash, none from a host that it names."""
    lock = json.loads((project / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    for name, package in packages.items():
        assert "resolved" not in package, name
        assert package["integrity"].startswith("sha512-"), name
    return len(packages)
