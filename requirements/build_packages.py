"""Build what a release consists of: the wheels of the server and of the Python client, and the TypeScript package.

The same commit gives the same bytes, with the pinned build tools: sources are those that git knows, with the time of
the commit and equal modes. Needs git; the TypeScript package needs npm and is left out without it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
# By package: its folder, and what belongs to it there.
WHEELS: Final = {
    "headwater-client": (Path("clients/python"), (".",)),
    "headwater": (
        Path(),
        ("pyproject.toml", "README.md", "LICENSE", "app", "clients/*.py", "clients/cli", "clients/cluster",
         "clients/demo", "clients/export", "clients/generator", "migrations", "workers"),
    ),
}  # fmt: skip
_SUMS: Final = "SHA256SUMS"


def git(*arguments: str) -> str:
    """What git prints. Raises subprocess.CalledProcessError."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.rstrip("\n")


def copy_sources(base: Path, parts: Iterable[str], target: Path) -> None:
    """Copies the files that git tracks, or would track once added, of the parts of a folder, with equal modes."""
    listed = git(
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        *(str(base / each) for each in parts),
    )
    for name in listed.split("\0"):
        source = ROOT / name
        if not name or not source.is_file():
            continue
        copied = target / Path(name).relative_to(base)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copied)
        copied.chmod(0o755 if os.access(source, os.X_OK) else 0o644)


def build_wheel(package: str, output: Path, epoch: str) -> Path:
    """Builds the wheel of a package into a folder. `epoch`: the time of its files, in seconds since 1970.

    Raises subprocess.CalledProcessError.
    """
    base, parts = WHEELS[package]
    with tempfile.TemporaryDirectory(prefix="headwater-wheel-") as scratch:
        sources, built = Path(scratch, "sources"), Path(scratch, "built")
        copy_sources(base, parts, sources)
        command = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "wheel",
            "--quiet",
            "--no-deps",
        ]
        subprocess.run(
            [*command, "--no-index", "--no-build-isolation", "--wheel-dir", built, sources],
            check=True,
            env=os.environ | {"SOURCE_DATE_EPOCH": epoch},
            # The modes of the files that setuptools writes are in the wheel, too.
            umask=0o022,
        )
        [wheel] = built.glob("*.whl")
        return Path(shutil.move(wheel, output / wheel.name))


def build_typescript(output: Path) -> Path:
    """Builds the TypeScript package into a folder. Raises subprocess.CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="headwater-typescript-") as scratch:
        copy_sources(Path(), ("clients/typescript", "openapi/openapi.json"), Path(scratch))
        folder = Path(scratch, "clients", "typescript")
        for command in (["ci", "--no-audit", "--no-fund", "--silent"], ["run", "--silent", "build"]):
            subprocess.run(["npm", *command], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        pack = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(output)]
        subprocess.run(pack, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    [package] = output.glob("*.tgz")
    return package


def write_sums(output: Path, files: Sequence[Path]) -> Path:
    """Writes the digests of the files, in the format of sha256sum."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)]
    sums = output / _SUMS
    sums.write_text("".join(lines))
    return sums


def build(output: Path) -> list[Path]:
    """Builds all packages into a folder, in place of those that are there. Raises subprocess.CalledProcessError."""
    output.mkdir(parents=True, exist_ok=True)
    for pattern in ("headwater*.whl", "headwater*.tgz", _SUMS):
        for former in output.glob(pattern):
            former.unlink()
    epoch = git("log", "-1", "--format=%ct")
    files = [build_wheel(package, output, epoch) for package in WHEELS]
    if shutil.which("npm") is None:
        print("dist: npm is not installed, so the TypeScript package is left out", file=sys.stderr)
    else:
        files.append(build_typescript(output.resolve()))
    return [*files, write_sums(output, files)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="the folder of the packages")
    try:
        for file in build(parser.parse_args().output):
            print(f"dist: {file}")
    except subprocess.CalledProcessError as failure:
        sys.exit(
            f"dist: this command failed with exit code {failure.returncode}: {' '.join(map(str, failure.cmd))}\n"
            f"{failure.stderr or ''}"
        )


if __name__ == "__main__":
    main()
