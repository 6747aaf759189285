"""The alerts as rules of Prometheus.

python -m app.features.alerts.prometheus > monitoring/alerts.yml
"""

from __future__ import annotations

import json
import sys

from app.features.alerts.declared import ALERTS, Alert, Condition


def expression(alert: Alert) -> str:
    """The condition in Prometheus' language. A threshold that a setting replaces has its default."""
    if alert.condition is Condition.ABSENT:
        return f"absent({alert.metric})"
    metric = alert.metric
    if alert.window_seconds:
        metric = f"{metric} - min_over_time({metric}[{alert.window_seconds}s])"
    if alert.per:
        metric = f"{metric} / {alert.per}"
    return f"{metric} {alert.condition.value} {alert.threshold:.12g}"


def rules() -> str:
    """The file of rules, as YAML."""
    lines = [
        "# Made by `make alerts` from app/features/alerts/declared.py.",
        "groups:",
        "  - name: headwater",
        "    rules:",
    ]
    for alert in ALERTS:
        lines += [
            f"      - alert: {alert.name}",
            f"        expr: {json.dumps(expression(alert))}",
            f"        for: {alert.for_seconds}s",
            f"        labels: {{severity: {alert.severity.value}}}",
            "        annotations:",
            f"          summary: {json.dumps(alert.summary)}",
            f"          description: {json.dumps(alert.action)}",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(rules())
