"""The programs of this machine that stand for those in the images."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

import msgspec

from app.infra.runtime import postgres, valkey

# How each can be had, for the message.
_NEEDED: Final = {
    "versitygw": "`make cluster` builds it with Go (github.com/versity/versitygw/cmd/versitygw@v1.8.0): install Go, "
    "or name a program with VERSITYGW=PATH",
    "caddy": "`make cluster` installs it from requirements/cluster.txt; name another one with CADDY=PATH",
}


class ProgramError(Exception):
    """A program is missing. The message says which, and how to get it."""


class Programs(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of PostgreSQL's programs, and the paths of the other programs. `spark_home`: that of PySpark."""

    postgres: Path
    valkey_server: Path
    versitygw: Path
    caddy: Path
    python: Path
    spark_home: Path

    @classmethod
    def found(cls, path: str) -> Self:
        """Those of this environment, and of the folders in `path`.

        Raises ProgramError, which names all that are missing, PostgresError, ValkeyError.
        """
        found = {name: shutil.which(os.environ.get(name.upper()) or name, path=path) for name in _NEEDED}
        if missing := [f"{name} is missing: {how}" for name, how in _NEEDED.items() if found[name] is None]:
            raise ProgramError("; ".join(missing))
        spark = find_spec("pyspark")
        if spark is None or spark.origin is None:
            raise ProgramError("the package pyspark is missing: run `make setup`")
        return cls(
            postgres=postgres.programs(),
            valkey_server=valkey.program(),
            versitygw=Path(str(found["versitygw"])).absolute(),
            caddy=Path(str(found["caddy"])).absolute(),
            python=Path(sys.executable),
            spark_home=Path(spark.origin).parent,
        )

    def command(self, image: str, command: tuple[str, ...]) -> tuple[str, ...]:
        """The command of a container as one of this machine: its first word, or the entry point of its image."""
        match (image, command[0]):
            case (_, "python"):
                return (str(self.python), "-P", *command[1:])
            case (_, "headwater"):
                return (str(self.python), "-P", "-m", "clients.cli", *command[1:])
            case (_, "spark-class"):
                return (str(self.spark_home / "bin" / "spark-class"), *command[1:])
            case (_, "postgres"):
                return (str(self.postgres / "postgres"), *command[1:])
            case (_, "valkey-server"):
                return (str(self.valkey_server), *command[1:])
            case (_, "caddy"):
                return (str(self.caddy), *command[1:])
            case ("versity/versitygw", _):
                return (str(self.versitygw), *command)
        raise ProgramError(f"no program of this machine stands for {command[0]} in the image {image}")
