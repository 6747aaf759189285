"""Build the project's environment from the pinned, hashed requirements; do nothing when it matches them.

Uses the standard library only: it runs before anything is installed. pip installs uv from a lock of its own, and uv
the rest, in about a third of pip's time. uv does not read pip's configuration, which says where packages come from, so
it is passed on. Where uv is not available, cannot follow that configuration, or fails, pip installs everything.
"""

import argparse
import ast
import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "requirements"
# The packages of this repository.
PACKAGES = {"headwater-client": ROOT / "clients" / "python", "headwater": ROOT}
# The folders of their code that processes import.
OWN_CODE = ("app", "workers", "migrations", "clients")
UV_LOCK = LOCKS / "uv.txt"
# What the environment is for: its locks, in the order of their installation. A layer has all packages of those before
# it. The first lock has what building source distributions needs.
LAYERS = {
    "up": ("build.txt", "runtime.txt", "embedded.txt"),
    "demo": ("build.txt", "runtime.txt", "embedded.txt", "demo.txt"),
    "all": ("build.txt", "dev.txt"),
}
# Settings of pip that have no effect on what is installed, or from where.
HARMLESS = frozenset({
    "break-system-packages", "cache-dir", "config-file", "default-timeout", "disable-pip-version-check", "no-cache-dir",
    "no-color", "no-input", "no-warn-script-location", "prefer-binary", "progress-bar", "quiet", "require-virtualenv",
    "retries", "root-user-action", "timeout", "verbose",
})  # fmt: skip


class NoCounterpartError(Exception):
    """uv lacks a setting of pip, which the message names."""


class Installer(NamedTuple):
    """A command that installs packages, the variables that it needs, and options for the step of our packages."""

    install: tuple[str, ...]
    variables: dict[str, str]
    editable: tuple[str, ...]

    def run(self, *arguments: str) -> None:
        """Installs what the arguments name.

        Raises subprocess.CalledProcessError, or OSError if this machine cannot run the program.
        """
        subprocess.run([*self.install, *arguments], check=True, env=os.environ | self.variables)


class Step(NamedTuple):
    """A part of a build: what is printed about it, and the arguments of an installer."""

    text: str
    arguments: tuple[str, ...]
    editable: bool = False


def fingerprint(locks: Sequence[Path]) -> str:
    """Digest of what decides what the environment holds: the locks, the metadata of our packages, and their place."""
    digest = hashlib.sha256(str(ROOT).encode())
    for path in [*locks, *(folder / "pyproject.toml" for folder in PACKAGES.values())]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def locks_of(layer: str) -> list[Path]:
    """The lock files of a layer, in the order of their installation."""
    return [LOCKS / name for name in LAYERS[layer]]


def stamp_of(layer: str) -> str:
    """What the stamp of an environment says if it has this layer as its last one."""
    return f"{layer} {fingerprint(locks_of(layer))}"


def layer_to_build(requested: str, stamp: str) -> str | None:
    """The layer that an environment with this stamp needs, or None if it has the requested one.

    An environment that had more is brought up to date as a whole: packages of a later layer that are older than the
    rest might not fit it.
    """
    order = list(LAYERS)
    has = stamp.partition(" ")[0]
    last = order[max(order.index(requested), order.index(has) if has in LAYERS else 0)]
    return None if stamp == stamp_of(last) else last


def interpreter(environment: Path) -> Path:
    """The environment's Python. It is a link, so it exists only while the Python that it points to does."""
    return environment / "bin" / "python"


def pip_settings(environment: Path) -> dict[str, str]:
    """What pip's configuration says about `pip install`: its files, then the variables of the process."""
    command = [str(interpreter(environment)), "-m", "pip", "config", "list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        name, is_setting, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if is_setting and section in found:
            found[section][option.replace("_", "-")] = str(ast.literal_eval(value))
    return found["global"] | found["install"] | found[":env:"]


def uv_options(settings: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """pip's settings as options and variables of uv. Raises NoCounterpartError."""
    options: list[str] = []
    variables: dict[str, str] = {}
    for name, value in settings.items():
        match name:
            case "index-url":
                options += ["--default-index", value]
            case "extra-index-url":
                # pip takes the best version of all indexes. The locks have a hash for each file that may be installed.
                options += [part for url in value.split() for part in ("--index", url)]
                options += ["--index-strategy", "unsafe-best-match"]
            case "find-links":
                options += [part for place in value.split() for part in ("--find-links", place)]
            case "no-index":
                if value.lower() in {"1", "true", "yes", "on"}:
                    options.append("--no-index")
            case "trusted-host":
                options += [part for host in value.split() for part in ("--allow-insecure-host", host)]
            case "cert":
                variables["SSL_CERT_FILE"] = value
            case "proxy":
                variables["ALL_PROXY"] = value
            case _ if name not in HARMLESS:
                raise NoCounterpartError(f"uv has no counterpart of pip's setting {name}")
    return options, variables


def pip_of(environment: Path) -> tuple[str, ...]:
    """The command of pip, which `venv` has brought."""
    return (str(interpreter(environment)), "-m", "pip", "--disable-pip-version-check")


def pip_installer(environment: Path) -> Installer:
    """pip as the installer."""
    # The locks are complete, so nothing is left to resolve; building without isolation keeps source
    # distributions to the pinned build tools of the first lock.
    install = (*pip_of(environment), "install", "--quiet", "--no-deps", "--no-build-isolation")
    return Installer(install, {}, editable=("--config-settings", "editable_mode=compat"))


def uv_installer(environment: Path) -> Installer | None:
    """uv, which pip installs; None where it is not available or cannot follow pip's configuration."""
    try:
        options, variables = uv_options(pip_settings(environment))
        pip_installer(environment).run("--require-hashes", "-r", str(UV_LOCK))
    except NoCounterpartError as missing:
        print(f"setup: {missing}, so pip installs the packages, which takes longer", flush=True)
        return None
    except subprocess.CalledProcessError:
        print("setup: uv cannot be installed, so pip installs the packages, which takes longer", flush=True)
        return None
    uv = str(environment / "bin" / "uv")
    # Files are copied, since a change of one in an environment must not change the others that came from uv's cache.
    install = (
        uv,
        "pip",
        "install",
        "--quiet",
        "--python",
        str(interpreter(environment)),
        "--link-mode",
        "copy",
    )
    return Installer(
        (*install, "--no-deps", "--no-build-isolation", "--no-config", *options),
        variables,
        editable=("--reinstall", "--config-setting", "editable_mode=compat"),
    )


def steps_of(locks: Sequence[Path], packages: dict[str, Path]) -> list[Step]:
    """The parts of a build, in order."""
    steps = [
        Step(f"{lock.read_text().count('==')} packages of {lock.name}", ("--require-hashes", "-r", str(lock)))
        for lock in locks
    ]
    if packages:
        # `compat` adds the folder to the path; without it only an import hook knows it, which type checkers do not run.
        folders = tuple(part for folder in packages.values() for part in ("--editable", str(folder)))
        steps.append(Step(f"{' and '.join(packages)}, editable", folders, editable=True))
    return steps


def build(environment: Path, locks: Sequence[Path], packages: dict[str, Path]) -> None:
    """Fill the environment, each lock in the order given, then our packages; create it unless it is there.

    One that is there is brought up to date in place: processes that run from it keep running.

    Raises subprocess.CalledProcessError.
    """
    if not interpreter(environment).exists():
        print(f"setup: making {environment}", flush=True)
        venv.create(environment, with_pip=True, clear=True, symlinks=True)
    pip = pip_installer(environment)
    installer = uv_installer(environment) or pip
    steps = steps_of(locks, packages)
    for step in steps:
        print(f"setup: installing {step.text}", flush=True)
        if step.editable:
            # A program that moves from one of them to the other, as `headwater` has, would be removed with the other's
            # former version.
            subprocess.run([*pip_of(environment), "uninstall", "-qq", "--yes", *packages], check=True)
        try:
            _run(installer, step)
        except (subprocess.CalledProcessError, OSError):
            if installer is pip:
                raise
            print("setup: uv failed, so pip installs the packages, which takes longer", flush=True)
            installer = pip
            _run(installer, step)
    subprocess.run([*pip_of(environment), "check"], check=True, stdout=subprocess.DEVNULL)
    compile_all(environment, [ROOT / name for name in OWN_CODE] if packages else [])


def compile_all(environment: Path, folders: Sequence[Path]) -> None:
    """Compile the packages of the environment and these folders, except what is compiled already.

    uv compiles nothing by itself. Otherwise each process compiles what it imports when it starts, every time where it
    may write no bytecode, as PYTHONDONTWRITEBYTECODE says: that takes longer than the rest of a start.
    """
    print("setup: compiling the packages", flush=True)
    places = [*environment.glob("lib/python3.*/site-packages"), *folders]
    # Packages have templates and code for other versions of Python, which nothing imports: errors are left out.
    command = (str(interpreter(environment)), "-m", "compileall", "-qq", "-j", "0", *map(str, places))
    subprocess.run(command, check=False)


def _run(installer: Installer, step: Step) -> None:
    installer.run(*(installer.editable if step.editable else ()), *step.arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--locks-only", action="store_true", help="without the packages of this repository")
    parser.add_argument("--layer", choices=LAYERS, help="what the environment is for")
    parser.add_argument("locks", type=Path, nargs="*", help="the locks, where it is no layer")
    arguments = parser.parse_args()
    if bool(arguments.layer) == bool(arguments.locks):
        parser.error("name a layer or locks")
    if sys.version_info < (3, 11):  # noqa: UP036 - an older python3 may be first on PATH
        sys.exit(
            f"Headwater needs Python 3.11 or later; {sys.executable} is {sys.version.split()[0]}. "
            "Name another with: make PYTHON=python3.12 setup"
        )
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            f"{sys.executable} cannot make environments: it lacks the module ensurepip. "
            "On Debian and Ubuntu, `apt-get install python3-venv` brings it."
        )
    bring_up_to_date(
        arguments.venv, arguments.layer, arguments.locks, {} if arguments.locks_only else PACKAGES
    )


def bring_up_to_date(
    environment: Path, layer: str | None, locks: list[Path] | None, packages: dict[str, Path]
) -> None:
    """Builds what the environment lacks of a layer, or of locks, unless its stamp is the one of these."""
    stamp = environment / "requirements.sha256"

    def lacks() -> tuple[str, list[Path]] | None:
        """The stamp of what has to be built, and its locks."""
        has = stamp.read_text() if stamp.exists() and interpreter(environment).exists() else ""
        if layer is None:
            wanted = fingerprint(locks or [])
            return None if has == wanted else (wanted, locks or [])
        to_build = layer_to_build(layer, has)
        return None if to_build is None else (stamp_of(to_build), locks_of(to_build))

    if lacks() is None:
        return
    # Two makes at once would fill one environment from both sides; the second waits, and finds it done.
    folder = os.open(LOCKS, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    if (missing := lacks()) is None:
        return
    wanted, files = missing
    began = time.monotonic()
    if stamp.exists():
        # A build that is interrupted leaves an environment that matches neither the former requirements nor these.
        stamp.write_text(f"{wanted.partition(' ')[0]} unfinished")
    try:
        build(environment, files, packages)
    except subprocess.CalledProcessError as failure:
        sys.exit(f"setup: this command failed with exit code {failure.returncode}: {' '.join(failure.cmd)}")
    stamp.write_text(wanted)
    print(f"setup: {environment} is ready after {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
