"""What the processes of peers import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("release", ["3.5", "4.1"])
def test_peers_on_spark_start_with_the_packages_of_their_environment(release: str) -> None:
    locked = (ROOT / "requirements" / f"bench-spark-{release}.txt").read_text()
    own = set(re.findall(r"^([\w-]+)==", locked, re.MULTILINE))
    assert {"msgspec", "pyspark"} <= own
    # A package of the service that an environment of a peer does not have.
    absent = {"httpx2", "litestar", "sqlalchemy", "redis", "celery"} - own
    program = f"import sys; sys.modules.update(dict.fromkeys({sorted(absent)})); import bench.peers.__main__"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=60)
