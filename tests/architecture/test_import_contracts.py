"""The direction of imports, as pyproject.toml declares it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lint_imports(folder, *options):
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache", *options], cwd=folder, capture_output=True, text=True, check=False
    )


def test_imports_point_down_only():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_an_import_that_points_up_is_caught(tmp_path):
    # The same contracts over a small copy of the tree with one wrong import: a contract that names no module
    # any more would keep itself for ever.
    layers = ("lake", "services", "store", "files", "outbound", "api", "runtime")
    for package in ("app", *(f"app/{layer}" for layer in layers)):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / "app" / "settings.py").write_text("")
    for package in ("workers", "workers/jobs", "workers/engine", "clients"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    assert lint_imports(tmp_path).returncode == 0
    wrong = {
        "app/lake/snapshot.py": "import sqlalchemy",
        "app/services/commit.py": "import app.store",
        "app/store/session.py": "import app.api",
        "app/outbound/webhook_sender.py": "import app.store",
        "app/api/datasets.py": "import app.store",
        "workers/engine/merge_handle.py": "import app.services",
        "app/runtime/stack.py": "import app.store",
        "workers/jobs/write.py": "import clients",
    }
    for path, statement in wrong.items():
        (tmp_path / path).write_text(statement + "\n")
        result = lint_imports(tmp_path)
        (tmp_path / path).unlink()
        assert result.returncode == 1, f"{path}: {statement}\n{result.stdout}{result.stderr}"
        assert path.removesuffix(".py").replace("/", ".") in result.stdout
