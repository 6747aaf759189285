"""The engines that read open tables, each in a process of its own, and what is known that they cannot read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pytest

from app.infra.runtime.java import java_home
from tests.support import maven

ROOT: Final = Path(__file__).parents[2]
READERS: Final = Path(__file__).with_name("readers")
OWN_PYTHON: Final = ROOT / ".venv-open" / "bin" / "python"
_SPARK: Final = ROOT / ".venv-bench-spark-4.1" / "bin" / "python"
_JARS: Final = ROOT / ".iceberg"
_POM: Final = Path(__file__).with_name("pom.xml")
_READ_SECONDS_MAX: Final = 300
WAREHOUSES: Final = ("v3", "v2")


class EngineError(Exception):
    """An engine could not read. The message is the engine's own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Engine:
    """An engine and its limits."""

    name: str
    program: str
    python: Path = OWN_PYTHON
    warehouses: Sequence[str] = WAREHOUSES
    """Those that it reads."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of each of its requests."""
    fills_nulls: bool = False
    """It has no null of a list, map or struct: these are empty, and the members of such a struct are null."""
    fills_nulls_of_nested_types: bool = False
    """A null list or map is empty where its values are lists, maps or structs."""
    zoned: bool = False
    """It has one type of points in time: those without a time zone are read as if they were of UTC."""
    on_spark: bool = False
    service: str = "/iceberg"
    """The path of what it reads from."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    """Of the tables of `tests.open.tables` those that it cannot read, and a pattern of its error."""

    def interpreter(self) -> Path:
        """What runs its programs. The test is skipped, with the reason, where the engine is not there."""
        python = self.python
        if self is DUCKDB and not python.exists() and find_spec("duckdb_extension_iceberg") is not None:
            python = Path(sys.executable)
        if not python.exists():
            pytest.skip(f"{self.name} is not installed: `make open-readers` builds its environment")
        return python


CHDB: Final = Engine(
    name="chdb",
    program="chdb_reader.py",
    warehouses=("v2",),
    zoned=True,
    fills_nulls=True,
    gaps={"dotted": "UNKNOWN_TABLE"},
)
DAFT: Final = Engine(
    name="daft",
    program="daft_reader.py",
    warehouses=("v2",),
    # It has no file to take the type of a map's keys from.
    gaps={"empty": "Incorrect datatype for StructArray field"},
)
DUCKDB: Final = Engine(name="duckdb", program="duckdb_reader.py")
POLARS: Final = Engine(name="polars", program="polars_reader.py")
PYICEBERG: Final = Engine(name="pyiceberg", program="pyiceberg_reader.py", fills_nulls_of_nested_types=True)
SPARK: Final = Engine(name="spark", program="spark_reader.py", python=_SPARK, on_spark=True)
SHARING: Final = Engine(
    name="delta-sharing",
    program="delta_sharing_reader.py",
    warehouses=("auto", "delta"),
    service="/delta-sharing",
)
"""Its warehouses are the formats of answers."""
ENGINES: Final = (DUCKDB, PYICEBERG, POLARS, CHDB, DAFT, SPARK)


@dataclass(frozen=True, kw_only=True)
class Address:
    """A table, and the credential to read it with."""

    url: str
    api_key: str
    table: str


class Reader:
    """A running engine."""

    def __init__(self, engine: Engine, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.engine = engine
        self._folder = TemporaryDirectory(prefix="headwater-open-")
        self._numbers = count(1)
        self._log = Path(self._folder.name, "log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder.name,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def read(
        self,
        address: Address,
        *,
        warehouse: str = "v3",
        version: int | None = None,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> pa.Table:
        """The rows that the engine reads. Raises EngineError."""
        out = Path(self._folder.name, f"{next(self._numbers)}.arrow")
        answer = self._answer(
            {
                "uri": f"{address.url}{self.engine.service}",
                "token": address.api_key,
                "warehouse": warehouse,
                "table": address.table,
                "version": version,
                "where": where,
                "columns": columns,
                "options": {**self.engine.options, **options},
                "out": str(out),
            }
        )
        if "error" in answer:
            raise EngineError(answer["error"])
        with pa.memory_map(str(out)) as file:
            rows = pa.ipc.open_file(file).read_all()
        out.unlink()
        return rows

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(_READ_SECONDS_MAX, self._process.kill)
        watch.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        assert line, f"{self.engine.name} ended: {self._log.read_text(errors='replace')[-3000:]}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()


def started(engine: Engine, scratch: Path) -> Reader:
    """A process of the engine. The test is skipped, with the reason, where the engine is not there."""
    python, arguments = engine.interpreter(), [str(READERS / engine.program)]
    environment = {
        **os.environ,
        "NO_PROXY": "*",
        "no_proxy": "*",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if engine.on_spark:
        arguments += jars()
        environment["JAVA_HOME"] = str(java_home(scratch))
    return Reader(engine, [str(python), *arguments], environment)


def jars() -> list[str]:
    """Iceberg for Spark. The test is skipped, with the reason, where Maven is not there."""
    try:
        maven.install(_POM, _JARS, "Iceberg for Spark")
    except maven.MavenFailed as error:
        pytest.skip(str(error))
    return [str(jar) for jar in sorted(_JARS.glob("*.jar"))]
