"""The API process before it serves."""

from __future__ import annotations

import os
import subprocess
import sys

_SCRIPT = """
import gc
import app.main

class Stopped:
    def run(self):
        print(gc.get_freeze_count(), len(gc.get_objects()))

app.main.server = lambda *_: Stopped()
app.main.main()
"""


def test_full_collections_leave_out_what_was_loaded() -> None:
    """The event loop stops during a collection."""
    settings = {
        "HEADWATER_DATABASE_URL": "postgresql://nobody@localhost:1/none",
        "HEADWATER_REDIS_URL": "redis://localhost:1",
        "HEADWATER_STORAGE_URI": "file:///nonexistent",
    }
    ended = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    frozen, collected = map(int, ended.stdout.split())
    assert frozen > 100 * collected
