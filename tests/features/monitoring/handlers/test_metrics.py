"""GET /metrics: what a process counts, and the samples of the service, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from app.features.monitoring.repository.leaders import LeaderStore
from app.features.monitoring.service.exposition import exposition
from app.features.monitoring.service.gather import Gather, SamplePart
from app.features.monitoring.values import GATHERED, Sample
from app.infra.instruments import serve_metrics
from app.infra.runtime.loopback import free_port
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.http import upsert
from tests.support.leaders import end_lease
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for
from tests.support.store_fixtures import Stores
from tests.support.waiting import until


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """Its API gathers often."""
    with postgres.fresh_database() as name, TemporaryDirectory(prefix="headwater-tests-") as directory:
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        settings = settings_for(*urls, Path(directory), metrics_seconds=1.0)
        with running_service(settings) as running:
            yield running


@pytest.fixture
def port() -> int:
    return free_port()


def families(answer: httpx2.Response) -> dict[str, Metric]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {each.name: each for each in text_string_to_metric_families(answer.text)}


@pytest.fixture
def operator(new_client: Callable[..., httpx2.Client]) -> httpx2.Client:
    return new_client(("operate",))


def routes(metrics: dict[str, Metric]) -> dict[tuple[str, str, str], float]:
    """The numbers of requests by method, route and status."""
    return {
        (
            each.labels["http_request_method"],
            each.labels["http_route"],
            each.labels["http_response_status_code"],
        ): each.value
        for each in metrics["http_server_request_duration_seconds"].samples
        if each.name.endswith("_count")
    }


def test_requests_are_counted_by_the_template_of_their_route(
    operator: httpx2.Client, client: httpx2.Client, orders: str
) -> None:
    before = routes(families(operator.get("/metrics")))
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    client.get("/datasets/no-such-dataset")
    client.get("/no/such/path/7")
    after = routes(families(operator.get("/metrics")))
    new = {key: number - before.get(key, 0) for key, number in after.items() if number != before.get(key, 0)}
    assert new == {
        ("POST", "/datasets/{dataset}/writes", "202"): 1,
        ("GET", "/datasets/{dataset}", "404"): 1,
        ("GET", "", "404"): 1,
        ("GET", "/metrics", "200"): 1,
    }


def test_service_is_gathered_by_the_leading_process(operator: httpx2.Client, orders: str) -> None:
    def gathered() -> dict[str, Metric] | None:
        found = families(operator.get("/metrics"))
        return found if "headwater_datasets" in found else None

    metrics = until(gathered, "the first samples")
    assert metrics["headwater_datasets"].samples[0].value >= 1
    assert all(each.value == 1 for each in metrics["headwater_gather_ok"].samples)
    for metric in GATHERED:
        if metric.name in metrics:
            assert metrics[metric.name].documentation == metric.help
    unlabelled = {each.name for each in GATHERED if not each.labels}
    assert unlabelled <= set(metrics)


def test_metrics_need_an_operators_key(new_client: Callable[..., httpx2.Client]) -> None:
    assert new_client(("read", "write", "manage")).get("/metrics").status_code == 403


@pytest.fixture
def registry(stores: Stores) -> Iterator[CollectorRegistry]:
    samples = [
        Sample("headwater_consumer_lag_changes", {"tenant": 'a"b', "dataset": "d", "consumer": "c\n"}, 7)
    ]
    gather = Gather(
        {"consumers": SamplePart(read=lambda: samples)},
        LeaderStore(stores.database),
        "here",
        every_seconds=60,
    )
    gather.run()
    yield exposition(gather)
    end_lease(stores.database, "metrics")


def get(port: int) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.status == 200
    text = answer.read().decode()
    connection.close()
    return text


def test_worker_serves_its_metrics_on_a_port(registry: CollectorRegistry, port: int) -> None:
    serve_metrics(registry, "127.0.0.1", port)
    found = {each.name: each for each in text_string_to_metric_families(get(port))}
    [lag] = found["headwater_consumer_lag_changes"].samples
    assert (lag.labels, lag.value) == ({"tenant": 'a"b', "dataset": "d", "consumer": "c\n"}, 7)
    assert found["process_resident_memory_bytes"].samples[0].value > 0


def test_port_that_is_taken_stops_nothing(
    registry: CollectorRegistry, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        serve_metrics(registry, "127.0.0.1", port)
    assert f"no metrics are served on port {port}" in caplog.text
    assert "process_cpu_seconds_total" in get(port)
