"""The metrics of a process in the text format of Prometheus: what it counts itself, and the samples while it leads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.features.monitoring.service.gather import Gather
from app.features.monitoring.values import GATHERED, MetricKind
from app.infra.instruments import REGISTRY

_FAMILIES: Final = {MetricKind.GAUGE: GaugeMetricFamily, MetricKind.COUNTER: CounterMetricFamily}


class _Instruments(Collector):
    """What the process counts itself."""

    def collect(self) -> Iterable[Metric]:
        return REGISTRY.collect()


class _Samples(Collector):
    """The samples of the service, in the process that leads."""

    def __init__(self, gather: Gather) -> None:
        self._gather = gather

    def collect(self) -> Iterator[Metric]:
        samples = self._gather.samples()
        for metric in GATHERED:
            family = _FAMILIES[metric.kind](metric.name, metric.help, labels=metric.labels)
            for sample in samples:
                if sample.name == metric.name:
                    family.add_metric([sample.labels[label] for label in metric.labels], sample.value)
            if family.samples:
                yield family


def exposition(gather: Gather | None = None) -> CollectorRegistry:
    """The metrics of this process. `gather`: what gathers in it; None for a process that never leads."""
    registry = CollectorRegistry()
    registry.register(_Instruments())
    if gather is not None:
        registry.register(_Samples(gather))
    return registry
