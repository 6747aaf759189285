"""The examples, run as their users run them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(command, service, api_key):
    with service.working():
        return subprocess.run(
            command,
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


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl, which the example uses, is not here")
def test_curl_quickstart_prints_its_results(service, api_key):
    done = run(["bash", "examples/quickstart.sh"], service, api_key)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = [part.splitlines() for part in done.stdout.split("== ")[1:]]
    answers = [[json.loads(line) for line in lines if line] for _, *lines in parts]
    _, first, second, changes, now, before, timeline = answers
    assert [job["state"] for job in (*first, *second)] == ["succeeded", "succeeded"]
    assert [change["op"] for change in changes] == ["+A", "+A", "-C", "+C"]
    assert [change["row"]["price"] for change in changes[2:]] == ["19.90", "17.50"]
    assert sorted(row["price"] for row in now) == ["17.50", "240.00"]
    assert sorted(row["price"] for row in before) == ["19.90", "240.00"]
    assert len(timeline[0]["items"]) == 2


def test_python_quickstart_prints_its_results(service, api_key):
    done = run([sys.executable, "examples/quickstart.py"], service, api_key)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("  ")] == ["+A", "+A", "-C", "+C"]
    assert "'17.50'" in next(line for line in lines if line.startswith("now:"))
    assert "'19.90'" in next(line for line in lines if line.startswith("at version 1:"))
    assert lines[-1].startswith("refused: 422 schema-mismatch")


def test_ways_to_write_example_prints_its_results(service, api_key):
    done = run([sys.executable, "examples/ways_to_write.py"], service, api_key)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = {
        title: [line.strip() for line in lines]
        for title, *lines in (part.splitlines() for part in done.stdout.split("== ")[1:])
    }
    assert parts["in the feed"] == [
        "-R {'item': 'desk', 'pieces': 1}",
        "-C {'item': 'lamp', 'pieces': 4}",
        "+C {'item': 'lamp', 'pieces': 3}",
        "+A {'item': 'vase', 'pieces': 2}",
    ]
    assert parts["orders"] == ["{'id': 1, 'item': 'lamp', 'state': 'paid'}"]
    assert "expected int64" in parts["in quarantine"][0]
    assert parts["redriven"] == ["1 inserted"]
    assert parts["shipped"] == ["upsert committed"] * 2
    assert parts["refused"] == ["commit-conflict"]
    assert parts["compacted"] == ["version 3"]
    assert parts["items to order"] == ["lamp: 2 left (item:lamp)", "vase: 2 left (item:vase)"]
    assert parts["stock on the first night"] == ["desk", "lamp", "rug"]
    assert parts["orders in the end"] == ["1 shipped", "3 new", "4 new"]


def test_read_tables_example_prints_its_results(service, api_key):
    done = run([sys.executable, "examples/read_tables.py"], service, api_key)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "the dearest of Bonn: [6, 27, 48]",
        "the latest: [999, 998, 997]",
        "changed since: [(0, '9.90')]",
        "in files: 1000 rows",
    ]
