"""A test of pure rules starts without the service: only the kernel and what all tests share are imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The largest packages that the service imports. Each costs tenths of a second.
HEAVY = ("celery", "faker", "litestar", "psycopg", "pyspark", "schemathesis", "sqlalchemy", "valkey")

COLLECT = f"""
import sys, pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", "--collect-only", "tests/kernel/format/test_halving.py"])
print("imported:", *sorted(set({HEAVY!r}) & set(sys.modules)))
sys.exit(code)
"""


def test_pure_tests_start_without_the_service() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].strip() == "imported:"
