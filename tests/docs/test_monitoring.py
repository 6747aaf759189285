"""docs/monitoring.md has the metrics as the code declares them."""

from __future__ import annotations

from pathlib import Path

from tests.docs.monitoring import process_metrics, published, service_metrics

DOCUMENT = Path(__file__).parents[2] / "docs" / "monitoring.md"


def test_document_of_metrics_equals_their_help_texts() -> None:
    again = "write it again: python -m tests.docs.monitoring > docs/monitoring.md"
    assert DOCUMENT.read_text(encoding="utf-8") == published(), again


def test_names_and_help_texts_are_those_of_prometheus() -> None:
    metrics = [*process_metrics(), *service_metrics()]
    names = [name for name, *_ in metrics]
    assert len(set(names)) == len(names)
    for name, kind, _, meaning in metrics:
        assert name.startswith(("headwater_", "http_server_"))
        assert name.endswith("_total") == (kind == "counter")
        assert meaning.endswith(".")
