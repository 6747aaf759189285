"""docker-compose.yml and the Dockerfile keep to what the code reads and runs."""

import re
from pathlib import Path

import pytest
import yaml

from app.settings import VARIABLES, Settings

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = ("init", "api", "worker")
# ${NAME:?why}, as compose writes a variable that must be set.
REQUIRED = re.compile(r"\$\{[A-Z0-9_]+:\?[^}]*\}")


def test_compose_file_declares_every_process():
    assert set(SERVICES) == {
        "postgres", "redis", "storage", "bucket", "init", "api", "worker", "spark-master", "spark-worker",
    }  # fmt: skip


def test_service_dependencies_exist_and_their_conditions_are_reachable():
    for name, service in SERVICES.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in SERVICES, f"{name} needs {needed}"
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[needed], f"{needed} never says that it is healthy"
            if how["condition"] == "service_completed_successfully":
                assert "restart" not in SERVICES[needed], f"{needed} is a job, and jobs end"


@pytest.mark.parametrize("name", ["api", "worker"])
def test_serving_processes_depend_on_the_schema_the_bucket_and_redis(name):
    assert {"init", "bucket", "redis"} <= set(SERVICES[name]["depends_on"])


@pytest.mark.parametrize("name", OURS)
def test_settings_are_known_and_valid(name):
    environment = {key: REQUIRED.sub("p", value) for key, value in SERVICES[name]["environment"].items()}
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
        role = Settings.from_environment(SERVICES[name]["environment"]).database_url
        assert role.startswith("postgresql://headwater_app:")


def test_executors_have_no_settings_of_postgres_or_redis():
    assert not any(key.startswith("HEADWATER_") for key in SERVICES["spark-worker"]["environment"])


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
        if line.startswith("COPY "):
            copied.update(line.split()[1:-1])
    assert not {path for path in copied if not (ROOT / path).exists()}
    assert {"app", "clients", "migrations", "workers"} <= copied
