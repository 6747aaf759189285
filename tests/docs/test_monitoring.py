"""docs/monitoring.md and the dashboard have the metrics as the code declares them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import yaml

from app.core.jobs.kinds.kind import WriteProcess
from app.infra.runtime.stack import metrics_port
from tests.docs.monitoring import process_metrics, published, service_metrics

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "monitoring.md"
DASHBOARD = ROOT / "grafana" / "headwater.json"


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


def names_in(expression: str) -> set[str]:
    """The metrics that an expression of Prometheus names."""
    return set(re.findall(r"\b(?:headwater|http_server|process)_\w+", expression))


def series() -> set[str]:
    """The names of the series that processes serve."""
    names = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
    for name, kind, _, _ in [*process_metrics(), *service_metrics()]:
        ends = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
        names.update(f"{name}{end}" for end in ends)
    return names


def test_dashboard_shows_existing_metrics_and_all_of_them() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    targets = [target for panel in panels for target in panel.get("targets", ())]
    assert targets
    shown: set[str] = set()
    for target in targets:
        assert names_in(target["expr"]), target
        assert names_in(target["expr"]) <= series(), target["expr"]
        shown |= names_in(target["expr"])
    ends = re.compile("_(bucket|count|sum)$")
    declared = {name for name, *_ in [*process_metrics(), *service_metrics()]}
    assert declared <= shown | {ends.sub("", name) for name in shown}


def test_dashboard_uses_labels_that_the_metrics_have() -> None:
    labels = {name: set(each) for name, _, each, _ in [*process_metrics(), *service_metrics()]}
    end = re.compile("_(bucket|count)$")
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    for target in (target for panel in panels for target in panel.get("targets", ())):
        known = {"le", "job", "instance"}
        for name in names_in(target["expr"]):
            known |= labels.get(name, labels.get(end.sub("", name), set()))
        used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        for each in re.findall(r"by \(([^)]*)\)", target["expr"]):
            used.update(each.split(", "))
        assert used <= known, target


def blocks_of_the_page() -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def test_workers_of_the_compose_file_serve_metrics_where_the_page_says() -> None:
    _, block = blocks_of_the_page()
    [job] = yaml.safe_load(block)
    [search] = job["dns_sd_configs"]
    services = yaml.safe_load((DOCUMENT.parents[1] / "docker-compose.yml").read_text(encoding="utf-8"))[
        "services"
    ]
    [name] = search["names"]
    environment = services[name]["environment"]
    assert environment["HEADWATER_METRICS_PORT"] == str(search["port"])
    assert environment["HEADWATER_METRICS_HOST"] == "0.0.0.0"


def test_configuration_of_the_page_scrapes_the_ports_of_the_service(tmp_path: Path) -> None:
    block, _ = blocks_of_the_page()
    jobs = {each["job_name"]: each for each in yaml.safe_load(block)["scrape_configs"]}
    [api] = jobs["headwater-api"]["static_configs"][0]["targets"]
    workers = jobs["headwater-worker"]["static_configs"][0]["targets"]
    port = metrics_port(int(api.partition(":")[2]))
    assert workers == [f"localhost:{port + number}" for number in range(len(WriteProcess))]
    if promtool := shutil.which("promtool"):
        key = tmp_path / "key"
        key.write_text("hw_key")
        file = tmp_path / "prometheus.yml"
        file.write_text(block.replace("/etc/prometheus/headwater.key", str(key)))
        subprocess.run([promtool, "check", "config", str(file)], check=True)
