"""Writes the page of the metrics, from their help texts.

python -m tests.docs.monitoring > docs/monitoring.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from app.features.alerts.declared import ALERTS
from app.features.alerts.prometheus import expression
from app.features.monitoring.values import GATHERED
from app.infra.instruments import REGISTRY

_PAGE: Final = Path(__file__).with_name("monitoring.md")
_LABELS: Final = "_labelnames"


def process_metrics() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Name, type, labels and help of each instrument."""
    for instrument in REGISTRY._collector_to_names:
        if hasattr(instrument, _LABELS):
            [metric] = instrument.describe()  # type: ignore[attr-defined]
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            yield name, metric.type, tuple(getattr(instrument, _LABELS)), metric.documentation


def service_metrics() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Name, type, labels and help of each metric that is gathered."""
    for metric in GATHERED:
        yield metric.name, metric.kind.value, metric.labels, metric.help


def _table(metrics: Iterator[tuple[str, str, tuple[str, ...], str]]) -> str:
    lines = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for name, kind, labels, meaning in metrics:
        lines.append(f"| `{name}` | {kind} | {', '.join(f'`{each}`' for each in labels)} | {meaning} |")
    return "\n".join(lines)


def _alerts() -> str:
    lines = [
        "| alert | severity | about | condition | for | what is wrong | what to do |",
        "|---|---|---|---|---|---|---|",
    ]
    for alert in ALERTS:
        columns = [
            f"`{alert.name}`",
            alert.severity.value,
            alert.about.value,
            f"`{expression(alert)}`",
            f"{alert.for_seconds} s",
            alert.summary,
            alert.action,
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def published() -> str:
    """The text of docs/monitoring.md."""
    page = _PAGE.read_text(encoding="utf-8")
    tables = {
        "process": _table(process_metrics()),
        "service": _table(service_metrics()),
        "alerts": _alerts(),
    }
    for place, table in tables.items():
        page = page.replace(f"<!-- {place} -->", table)
    return page


if __name__ == "__main__":
    sys.stdout.write(published())
