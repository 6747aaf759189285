"""The example of impressions, run as its users run it, with a real broker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kafka.registry import Registry
from tests.support.service import Service
from tests.support.shares import share

ROOT = Path(__file__).parents[3]


@pytest.fixture
def api_key(service: Service) -> str:
    return service.new_key("impressions")


@share(6)
def test_impressions_are_read_once_and_then_as_they_arrive(
    service: Service, api_key: str, bootstrap: str, registry: Registry
) -> None:
    with service.working():
        done = subprocess.run(
            [sys.executable, "examples/impressions.py", bootstrap, registry.url],
            cwd=ROOT,
            env={
                **os.environ,
                "HEADWATER_URL": service.url,
                "HEADWATER_API_KEY": api_key,
                "NO_PROXY": "127.0.0.1",
                "PYTHONPATH": str(ROOT),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    once, table, complete, *live = done.stdout.splitlines()
    assert re.fullmatch(r"once: finished, 2000 messages, [12] rounds", once)
    assert re.fullmatch(r"table: \d{3,4} impressions of 5 users", table)
    assert complete == "complete: True"
    assert [line.split(" after ")[0] for line in live] == [f"live: +A live_{number}" for number in range(3)]
