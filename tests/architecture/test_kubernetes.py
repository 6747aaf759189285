"""The manifests for Kubernetes are valid, and run what docker-compose.yml runs, with the same settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from app.core.jobs.kinds.kind import WriteProcess
from app.infra.settings import VARIABLES, Settings

ROOT: Final = Path(__file__).parents[2]
VERSION: Final = "1.34"
DOCUMENTS: Final[dict[str, dict[str, Any]]] = {
    f"{each['kind']} {each['metadata']['name']}": each
    for path in sorted((ROOT / "kubernetes").glob("*.yaml"))
    for each in yaml.safe_load_all(path.read_text())
}
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
PODS: Final = {
    each["metadata"]["labels"]["app.kubernetes.io/component"]: each
    for each in DOCUMENTS.values()
    if "template" in each.get("spec", {})
}
# ${NAME:?why}, as compose writes a variable that must be set, and the key of a secret here.
REQUIRED: Final = re.compile(r"\$\{([A-Z0-9_]+):\?[^}]*\}")
SECRETS: Final = {
    "POSTGRES_PASSWORD": "headwater-database/owner-password",
    "APP_PASSWORD": "headwater-database/app-password",
    "ADMIN_PASSWORD": "headwater-database/admin-password",
    "S3_SECRET_KEY": "headwater-storage/secret-access-key",
}
# In the network of Docker, names of containers can be resolved; those of pods cannot.
ADDRESSES: Final = {
    "worker": {"HEADWATER_SPARK_DRIVER_HOST"},
    "spark-worker": {"SPARK_LOCAL_IP", "SPARK_PUBLIC_DNS"},
}
# Links need the URL at which clients reach the storage, which is not part of the manifests.
OF_COMPOSE: Final = {"HEADWATER_PUBLIC_URL", "HEADWATER_STORAGE_LINK_SECONDS", "HEADWATER_STORAGE_LINK_URL"}


def container_of(name: str) -> dict[str, Any]:
    [container] = PODS[name]["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = container
    return found


def variables(name: str) -> Iterator[tuple[str, str]]:
    """The environment of a container: values, `secret/key`, or the field of the pod."""
    container = container_of(name)
    for source in container.get("envFrom", []):
        yield from DOCUMENTS[f"ConfigMap {source['configMapRef']['name']}"]["data"].items()
    for each in container["env"]:
        match each:
            case {"name": variable, "value": value}:
                yield variable, value
            case {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}:
                yield variable, f"{secret}/{key}"
            case {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": field}}}:
                yield variable, field


def test_manifests_have_every_process_of_headwater_and_spark() -> None:
    ours = {name for name, service in COMPOSE.items() if "build" in service}
    assert set(PODS) == ours


@pytest.mark.parametrize("name", DOCUMENTS)
def test_manifests_are_valid(name: str) -> None:
    kubernetes_validate.validate(DOCUMENTS[name], VERSION, strict=True)


def test_validation_finds_unknown_and_missing_members() -> None:
    wrong = DOCUMENTS["Service headwater-api"] | {"specification": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


@pytest.mark.parametrize("name", PODS)
def test_processes_and_their_settings_are_those_of_the_compose_file(name: str) -> None:
    service, container = COMPOSE[name], container_of(name)
    assert container["args"] == service["command"]
    assert container["image"] == service["image"]
    listed = list(variables(name))
    found = dict(listed)
    assert len(found) == len(listed), "a variable is set twice"
    assert {found.pop(variable) for variable in ADDRESSES.get(name, ())} <= {"status.podIP"}
    expected = {
        key: REQUIRED.sub(lambda match: SECRETS[match[1]], value)
        for key, value in service["environment"].items()
        if key not in OF_COMPOSE
    }
    assert found == expected


@pytest.mark.parametrize("name", PODS)
def test_memory_is_that_of_the_compose_file(name: str) -> None:
    resources = container_of(name)["resources"]
    limit = COMPOSE[name]["mem_limit"].replace("g", "Gi")
    assert resources["limits"] == {"memory": limit}
    assert resources["requests"]["memory"] == limit
    assert "cpu" in resources["requests"]


def test_as_many_processes_run_and_have_as_long_to_stop() -> None:
    for name, pod in PODS.items():
        if pod["kind"] == "Deployment":
            assert pod["spec"]["replicas"] == COMPOSE[name].get("scale", 1)
        if "stop_grace_period" in COMPOSE[name]:
            grace = pod["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
            assert f"{grace}s" == COMPOSE[name]["stop_grace_period"]


@pytest.mark.parametrize("name", ["init", "api", "worker"])
def test_settings_are_known_and_valid(name: str) -> None:
    environment = dict(variables(name))
    assert not {key for key in environment if key.startswith("HEADWATER_")} - set(VARIABLES)
    Settings.from_environment(environment)


@pytest.mark.parametrize("name", PODS)
def test_containers_cannot_gain_rights_or_write_their_image(name: str) -> None:
    pod, container = PODS[name]["spec"]["template"]["spec"], container_of(name)
    user = re.search(r"useradd --uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert user is not None
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        **dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), int(user[1])),
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # A service account's token is of no use, and variables for services would look like settings.
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounted) == {volume["name"] for volume in pod["volumes"]}
    written = re.findall(
        r"/var/lib/headwater\S*", " ".join([*container["args"], *dict(variables(name)).values()])
    )
    assert all(path.startswith(mounted["data"]) for path in written)
    assert mounted["temporary"]


def test_selectors_choose_the_pods_of_their_component() -> None:
    labels = {name: pod["spec"]["template"]["metadata"]["labels"] for name, pod in PODS.items()}
    assert len({tuple(each.items()) for each in labels.values()}) == len(labels)
    for document in DOCUMENTS.values():
        component = document["metadata"]["labels"].get("app.kubernetes.io/component")
        match document["kind"]:
            case "Deployment" | "PodDisruptionBudget":
                assert document["spec"]["selector"]["matchLabels"] == labels[component]
            case "Service":
                assert document["spec"]["selector"] == labels[component]
                ports = {port["name"] for port in container_of(component)["ports"]}
                assert {port["targetPort"] for port in document["spec"]["ports"]} <= ports
    scaled = {name for name, pod in PODS.items() if pod["spec"].get("replicas", 1) > 1}
    budgets = {
        each["metadata"]["name"] for each in DOCUMENTS.values() if each["kind"] == "PodDisruptionBudget"
    }
    assert budgets == {PODS[name]["metadata"]["name"] for name in scaled}


def test_ports_of_the_metrics_of_workers_are_open_to_prometheus() -> None:
    [rule] = DOCUMENTS["NetworkPolicy headwater-worker-metrics"]["spec"]["ingress"]
    [ports] = rule["ports"]
    first = int(dict(variables("worker"))["HEADWATER_METRICS_PORT"])
    assert (ports["port"], ports["endPort"]) == (first, first + len(WriteProcess) - 1)
    assert rule["from"]


def test_traffic_is_decided_by_readiness_and_restarts_by_liveness() -> None:
    api = container_of("api")
    assert api["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    # It answers within 2 s.
    assert 2 < api["readinessProbe"]["timeoutSeconds"] <= api["readinessProbe"]["periodSeconds"]
    assert api["livenessProbe"]["httpGet"]["path"] == api["startupProbe"]["httpGet"]["path"] == "/health/live"
    [rule] = DOCUMENTS["Ingress headwater-api"]["spec"]["rules"]
    [path] = rule["http"]["paths"]
    assert f"Service {path['backend']['service']['name']}" in DOCUMENTS


def test_manifests_have_no_secrets_and_the_page_makes_those_that_they_name() -> None:
    assert not [name for name in DOCUMENTS if name.startswith("Secret ")]
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    made = {
        f"{secret}/{key}"
        for secret, options in re.findall(r"create secret generic (\S+) ((?:\\\n|[^\n])+)", page)
        for key in re.findall(r"--from-(?:literal|file)=([\w.-]+)=", options)
    }
    used = {value for name in PODS for value in dict(variables(name)).values() if value in SECRETS.values()}
    assert used == set(SECRETS.values())
    assert made == used | {"headwater-operator/operator.key"}
