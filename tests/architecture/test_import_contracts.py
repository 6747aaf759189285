"""The direction of imports, as pyproject.toml declares it."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lint_imports(folder, *options):
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache", *options], cwd=folder, capture_output=True, text=True, check=False
    )


# What the room of SQL takes from the table format: types, schemas, errors, and values as text and as bounds.
USED_BY_SQL = {
    "app.format.index.column_bounds",
    "app.format.errors",
    "app.format.file_group",
    "app.codecs.value_parser",
    "app.codecs.faults",
    "app.format.schema.texts",
    "app.format.schema.schema",
    "app.format.schema.types",
}


def test_sql_imports_little_of_the_table_format():
    imported = {
        node.module
        for path in (ROOT / "app" / "sql").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("app.")
    }
    assert {name for name in imported if not name.startswith("app.sql")} == USED_BY_SQL


def test_imports_point_down_only():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_an_import_that_points_up_is_caught(tmp_path):
    # The same contracts over a small copy of the tree with one wrong import: a contract that names no module
    # any more would keep itself for ever.
    rooms = [path.name for path in (ROOT / "app").iterdir() if (path / "__init__.py").is_file()]
    kinds = ("handlers", "service", "repository")
    folders = (
        "app",
        "workers",
        "clients",
        "workers/jobs",
        "workers/engine",
        *(f"app/{room}" for room in rooms),
    )
    for package in (*folders, *(f"app/{room}/{kind}" for room in rooms for kind in kinds)):
        (tmp_path / package).mkdir(exist_ok=True)
        (tmp_path / package / "__init__.py").write_text("")
    for module in (
        "app/settings.py",
        "app/writes/attempt.py",
        *(f"app/{room}/{kind}.py" for room in rooms for kind in ("values", "tables")),
    ):
        (tmp_path / module).write_text("")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    assert lint_imports(tmp_path).returncode == 0
    wrong = {
        "app/format/snapshot.py": "import sqlalchemy",
        "app/sql/lexer.py": "import app.files",
        "app/timeline/service/publish.py": "import app.timeline.repository",
        "app/db/session.py": "import app.http",
        "app/outbound/addresses.py": "import app.db",
        "app/catalog/handlers/datasets.py": "import app.catalog.repository",
        "workers/engine/merge.py": "import app.timeline.service",
        "app/runtime/stack.py": "import app.db",
        "workers/jobs/write.py": "import clients",
    }
    for path, statement in wrong.items():
        (tmp_path / path).write_text(statement + "\n")
        result = lint_imports(tmp_path)
        (tmp_path / path).unlink()
        assert result.returncode == 1, f"{path}: {statement}\n{result.stdout}{result.stderr}"
        assert path.removesuffix(".py").replace("/", ".") in result.stdout
