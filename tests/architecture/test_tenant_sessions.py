"""Postgres is reached through one door, `app/infra/db/session.py`: no statement runs outside of a tenant."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "app"
# The door itself with its connections, and what makes a database ready, examines it, or copies it, for no tenant or all
# of them. A source reads a database of its user.
DOORS = {
    "session.py",
    "answers.py",
    "bootstrap.py",
    "copying.py",
    "examination.py",
    "sql_postgres.py",
}
POSTGRES = ("sqlalchemy", "psycopg", "app.infra.db")
MODULES = sorted(
    path
    for path in APP.rglob("*.py")
    if path.name not in DOORS
    and "runtime" not in path.parts
    and any(name in path.read_text(encoding="utf-8") for name in POSTGRES)
)

OPENERS = {
    "create_engine",
    "create_async_engine",
    "create_pool",
    "engine_from_config",
    "sessionmaker",
    "Session",
}
OPENER_MODULES = {
    "psycopg",
    "psycopg_pool",
    "sqlalchemy.orm",
    "sqlalchemy.ext.asyncio",
    "sqlalchemy.engine",
    "alembic",
}
DOOR_METHODS = {"tenant", "relay", "credential", "named", "administration", "monitor", "listening"}
INSIDE_THE_DOOR = {"connect", "raw_connection", "_engine", "_open", "_begin", "_transaction"}
ROLE_STATEMENTS = (
    "set role",
    "reset role",
    "set session",
    "set_config",
    "row_security",
    "headwater.tenant_id",
)


def faults_of(source: str) -> list[str]:
    """What in a module's source goes around the door."""
    faults = []
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                faults += [f"imports {name.name}" for name in names if name.name in OPENER_MODULES]
            case ast.ImportFrom(module=module, names=names):
                if module in OPENER_MODULES or (module or "").split(".")[0] in OPENER_MODULES:
                    faults.append(f"imports {module}")
                faults += [f"imports {name.name}" for name in names if name.name in OPENERS]
            case ast.Attribute(attr=attribute) if attribute in INSIDE_THE_DOOR | OPENERS:
                faults.append(f"uses .{attribute}")
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                faults += [f"says {words!r}" for words in ROLE_STATEMENTS if words in text.lower()]
    return faults


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(APP)))
def test_stores_reach_postgres_through_tenant_sessions(path: Path) -> None:
    faults = faults_of(path.read_text(encoding="utf-8"))
    # The default of every tenant_id column reads the setting; it is where the tables are defined, and only
    # there.
    allowed = {"says 'headwater.tenant_id'"} if path.name == "columns.py" else set()
    assert set(faults) - allowed == set()


@pytest.mark.parametrize(
    "around",
    [
        "import psycopg",
        "from psycopg.rows import dict_row",
        "from sqlalchemy import create_engine",
        "from sqlalchemy.orm import Session",
        "import sqlalchemy\nengine = sqlalchemy.create_engine('')",
        "def f(database):\n    return database._engine",
        "def f(engine):\n    return engine.connect()",
        "from sqlalchemy import text\nquery = text('RESET ROLE')",
        "query = \"SELECT set_config('headwater.tenant_id', 'x', false)\"",
    ],
)
def test_check_reports_every_bypass_of_tenant_sessions(around: str) -> None:
    assert faults_of(around) != []


def test_check_accepts_a_tenant_session() -> None:
    assert faults_of('"""Never SET ROLE here."""\ndef f(database):\n    return database.tenant("t")') == []


def test_database_has_seven_public_sessions() -> None:
    tree = ast.parse((APP / "infra" / "db" / "session.py").read_text(encoding="utf-8"))
    [door] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Database"]
    public = {
        node.name for node in door.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert public == DOOR_METHODS | {"beat", "close"}
