"""The port of the metrics of a worker, from that of its API."""

from __future__ import annotations

import pytest

from app.infra.runtime.stack import metrics_port


@pytest.mark.parametrize(
    ("port", "metrics"), [(8080, 9080), (64_532, 65_532), (64_533, 63_533), (65_535, 64_535)]
)
def test_metrics_of_a_worker_are_beside_its_api(port: int, metrics: int) -> None:
    assert metrics_port(port) == metrics
