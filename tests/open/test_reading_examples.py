"""The texts that a dataset shows to readers, run as they are: only the key, and what fetches an engine, is replaced."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from app.features.iceberg.reading_examples import PROFILE, SHARE
from app.infra.runtime.java import java_home
from tests.open.datasets import OpenDataset, Tenant, answered
from tests.open.engines import CHDB, DUCKDB, PYICEBERG, READERS, SHARING, SPARK, jars
from tests.support.service import Service

_SECONDS_MAX: Final = 300
_MARK: Final = "a value to find"
_SQL: Final = {
    "DuckDB": """
import sys
from duckdb_reader import connection
for statement in connection().extract_statements(sys.stdin.read()):
    if not statement.query.strip().startswith(("INSTALL", "LOAD")):
        print(connection().execute(statement).fetchall())
""",
    "ClickHouse": """
import sys
from chdb.session import Session
session = Session()
for statement in sys.stdin.read().split(";\\n"):
    print(session.query(statement.strip().rstrip(";")))
""",
}
_ENGINES: Final = {"DuckDB": DUCKDB, "ClickHouse": CHDB}


@pytest.fixture(scope="module")
def shown_dataset(service: Service) -> Iterator[OpenDataset]:
    tenant = Tenant.new(service)
    fields = [{"name": "id", "type": "int64", "nullable": False}, {"name": "note", "type": "string"}]
    dataset = tenant.dataset("What-is_read", schema={"fields": fields}, record_key=["id"])
    dataset.upsert({"id": 1, "note": _MARK}, {"id": 2, "note": "a deleted one"})
    dataset.delete({"id": 2})
    yield dataset
    tenant.client.close()


def _code(dataset: OpenDataset, engine: str) -> str:
    examples = {each["engine"]: each["code"] for each in dataset.client.get(dataset.path).json()["read_with"]}
    return str(examples[engine]).replace("YOUR_API_KEY", dataset.tenant.api_key)


def _check_output(command: list[str], text: str = "") -> None:
    environment = {**os.environ, "NO_PROXY": "*", "no_proxy": "*", "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
        env=environment,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert _MARK in result.stdout
    assert "a deleted one" not in result.stdout


@pytest.mark.parametrize("engine", ["PyIceberg", "Polars", "Daft"])
def test_program_of_python_prints_the_rows(shown_dataset: OpenDataset, engine: str) -> None:
    _check_output([str(PYICEBERG.interpreter()), "-c", _code(shown_dataset, engine)])


@pytest.mark.parametrize("engine", list(_SQL))
def test_statements_return_the_rows(shown_dataset: OpenDataset, engine: str) -> None:
    python = _ENGINES[engine].interpreter()
    program = f"import sys; sys.path.insert(0, {str(READERS)!r})"
    _check_output([str(python), "-c", program + _SQL[engine]], _code(shown_dataset, engine))


def test_program_for_recipients_prints_the_rows(shown_dataset: OpenDataset, tmp_path: Path) -> None:
    client = shown_dataset.client
    answered(client.post("/shares", json={"name": "sales", "datasets": [{"name": shown_dataset.name}]}), 201)
    recipient = answered(client.post("/shares/sales/recipients", json={"name": "acme"}), 201).json()
    profile = tmp_path / "acme.share"
    profile.write_text(json.dumps(recipient["profile"]), encoding="utf-8")
    code = _code(shown_dataset, "pandas").replace(SHARE, "sales").replace(PROFILE, str(profile))
    _check_output([str(SHARING.interpreter()), "-c", code])


def test_command_of_spark_prints_the_rows(shown_dataset: OpenDataset, tmp_path: Path) -> None:
    programs = SPARK.interpreter().parent
    command = re.sub(
        r"^spark-sql --packages \S+", f"spark-sql --jars {','.join(jars())}", _code(shown_dataset, "Spark")
    )
    variables = f"JAVA_HOME={java_home(tmp_path)} SPARK_LOCAL_IP=127.0.0.1 PATH={programs}:$PATH"
    _check_output(["bash", "-c", f"cd {tmp_path}; export {variables}; {command}"])
