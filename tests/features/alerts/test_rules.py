"""The rules of Prometheus are those of the declaration."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from app.features.alerts.declared import ALERTS
from app.features.alerts.prometheus import expression, rules

FILE = Path(__file__).parents[3] / "monitoring" / "alerts.yml"
BY_NAME = {alert.name: alert for alert in ALERTS}


def test_file_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == rules(), "run `make alerts`"


def test_conditions_are_expressions() -> None:
    assert expression(BY_NAME["no-metrics"]) == "absent(headwater_workers_alive)"
    assert expression(BY_NAME["disk-low"]) == "headwater_disk_free_bytes / headwater_disk_total_bytes < 0.1"
    assert expression(BY_NAME["disk-full"]) == "headwater_disk_free_bytes < 536870912"
    grows = "headwater_quarantine_records - min_over_time(headwater_quarantine_records[3600s]) > 0"
    assert expression(BY_NAME["quarantine-grows"]) == grows


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian: prometheus) is not here")
def test_prometheus_accepts_the_file() -> None:
    ended = subprocess.run(
        ["promtool", "check", "rules", str(FILE)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{len(ALERTS)} rules found" in ended.stdout
