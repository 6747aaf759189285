"""`make cluster` runs the services of docker-compose.yml: their commands and environments, with other addresses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from app.infra.settings import Settings
from clients.cluster.composition import adjusted, image_environment, interpolated, read
from clients.cluster.plan import Container, plan
from clients.cluster.programs import ProgramError, Programs
from clients.cluster.start import PASSWORDS

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
VARIABLES = {name: f"{name} @/:%'\"#?" for name in PASSWORDS}
SERVICES = read(ROOT / "docker-compose.yml", ROOT / "Dockerfile", VARIABLES)
DATA = Path("/data of the cluster")
CONTAINERS = plan(SERVICES, DATA, "127.64.0", "127.0.0.1:9999")
PROGRAMS = Programs(
    postgres=Path("/bin/postgresql"),
    valkey_server=Path("/bin/valkey-server"),
    versitygw=Path("/bin/versitygw"),
    caddy=Path("/bin/caddy"),
    python=Path("/bin/python"),
    spark_home=Path("/spark"),
)
# Variables that Docker needs not: its containers have their network by themselves.
OF_THE_NETWORK = {"SPARK_LOCAL_IP", "HEADWATER_SPARK_DRIVER_HOST", "BIND", "LISTEN", "UPSTREAMS"}
# The port of the machine at which clients reach the storage is on the address of its container.
PUBLISHED = {"//localhost:9000": "//storage:9000"}
ADDRESSES = {
    container.address: container.service.name for container in CONTAINERS if container.name.endswith("-1")
}


def names(container: Container) -> str:
    return container.name


def as_in_the_file(container: Container, text: str) -> str:
    """A translated text with the names and paths of the file again."""
    for inside, here in sorted(container.folders.items(), key=lambda pair: -len(str(pair[1]))):
        text = text.replace(str(here), inside)
    for path in container.service.files:
        text = text.replace(str(container.own / Path(path).name), path)
    for address, name in ADDRESSES.items():
        text = re.sub(rf"{re.escape(address)}(?!\d)", name, text)
    return text


def test_every_service_of_the_file_runs_as_often_as_the_file_says() -> None:
    running = [container.service.name for container in CONTAINERS]
    assert {name: running.count(name) for name in COMPOSE["services"]} == {
        name: service.get("scale", 1) for name, service in COMPOSE["services"].items()
    }


def test_services_start_after_those_that_they_need() -> None:
    order = [container.service.name for container in CONTAINERS]
    for name, service in COMPOSE["services"].items():
        for needed in service.get("depends_on", {}):
            assert order.index(needed) < order.index(name)


@pytest.mark.parametrize("container", CONTAINERS, ids=names)
def test_environment_is_that_of_the_file_with_addresses_and_folders_of_this_machine(
    container: Container,
) -> None:
    stated = COMPOSE["services"][container.service.name].get("environment", {})
    image = image_environment(ROOT / "Dockerfile") if container.service.ours else {}
    assert set(container.environment) - OF_THE_NETWORK == {*stated, *image} - OF_THE_NETWORK
    for name in set(stated) - OF_THE_NETWORK:
        expected = interpolated(str(stated[name]), VARIABLES)
        value = container.environment[name]
        own = {"0.0.0.0": container.address, ":9000": f"{container.address}:9000"}
        assert value == own.get(expected, value)
        for url, place in PUBLISHED.items():
            expected = expected.replace(url, place)
        assert as_in_the_file(container, value) == expected or expected in own


@pytest.mark.parametrize("container", CONTAINERS, ids=names)
def test_command_is_that_of_the_file(container: Container) -> None:
    stated = tuple(COMPOSE["services"][container.service.name]["command"])
    assert tuple(as_in_the_file(container, word) for word in container.command[: len(stated)]) == stated
    program, *_ = PROGRAMS.command(container.service.image, container.command)
    assert Path(program).is_absolute()


def test_every_container_has_an_address_and_folders_of_its_own() -> None:
    assert len({container.address for container in CONTAINERS}) == len(CONTAINERS)
    assert len({container.own for container in CONTAINERS}) == len(CONTAINERS)
    for container in CONTAINERS:
        assert container.address.startswith("127.64.0.")
        for folder in container.folders.values():
            assert folder.is_relative_to(DATA)


def test_every_spark_worker_has_a_folder_for_hot_copies_of_its_own() -> None:
    folders = [
        Path(each.environment["HEADWATER_EXECUTOR_DIR"])
        for each in CONTAINERS
        if each.service.name == "spark-worker"
    ]
    assert len(set(folders)) == len(folders) == 2
    # As in a container, whose file system no other one sees.
    assert [each.name for each in CONTAINERS if "HEADWATER_EXECUTOR_DIR" in each.environment] == [
        "spark-worker-1",
        "spark-worker-2",
    ]


def test_proxy_serves_on_the_requested_port_and_knows_every_api() -> None:
    [ingress] = [container for container in CONTAINERS if container.service.name == "ingress"]
    apis = [f"{each.address}:8080" for each in CONTAINERS if each.service.name == "api"]
    assert len(apis) == 2
    assert ingress.environment["UPSTREAMS"].split() == ["to", *apis]
    assert (ingress.environment["BIND"], ingress.environment["LISTEN"]) == ("127.0.0.1", ":9999")


@pytest.mark.parametrize(
    "container", [each for each in CONTAINERS if "HEADWATER_DATABASE_URL" in each.environment], ids=names
)
def test_settings_of_processes_are_valid_with_passwords_of_any_characters(container: Container) -> None:
    settings = Settings.from_environment(container.environment)
    postgres = next(each.address for each in CONTAINERS if each.service.name == "postgres")
    assert f"@{postgres}:5432/headwater" in settings.database_url
    assert settings.data_dir == container.own


def test_variable_has_its_default_if_it_is_not_set() -> None:
    assert interpolated("${A:-http://x:1}/$$", {}) == "http://x:1/$"
    assert interpolated("${A:-http://x:1}", {"A": "y"}) == "y"
    with pytest.raises(KeyError):
        interpolated("${A:?set it}", {})


def test_links_are_for_the_address_at_which_the_storage_is_reached() -> None:
    storage, api = (next(each for each in CONTAINERS if each.name == name) for name in ("storage-1", "api-1"))
    assert api.environment["HEADWATER_STORAGE_LINK_URL"] == f"http://{storage.address}:9000"


def test_scale_changes_how_often_a_service_runs_and_what_the_proxy_knows() -> None:
    services = adjusted(SERVICES, {"api": 3, "spark-worker": 1}, {})
    containers = plan(services, DATA, "127.64.0", "127.0.0.1:9999")
    running = [container.service.name for container in containers]
    assert (running.count("api"), running.count("spark-worker"), running.count("worker")) == (3, 1, 2)
    [ingress] = [container for container in containers if container.service.name == "ingress"]
    apis = [f"{each.address}:8080" for each in containers if each.service.name == "api"]
    assert ingress.environment["UPSTREAMS"].split() == ["to", *apis]


def test_setting_replaces_a_variable_of_its_service_only() -> None:
    services = adjusted(SERVICES, {}, {"spark-worker": {"SPARK_WORKER_CORES": "1"}})
    assert services["spark-worker"].environment == {
        **SERVICES["spark-worker"].environment,
        "SPARK_WORKER_CORES": "1",
    }
    assert {**services, "spark-worker": None} == {**SERVICES, "spark-worker": None}


def test_scale_of_an_unknown_service_is_refused() -> None:
    with pytest.raises(ValueError, match="no service apis"):
        adjusted(SERVICES, {"apis": 2}, {})


def test_missing_program_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERSITYGW", raising=False)
    monkeypatch.setenv("CADDY", "/nowhere/caddy")
    with pytest.raises(ProgramError, match=r"versitygw is missing: .*Go.*; caddy is missing: "):
        Programs.found("/nowhere")


def test_command_of_an_unknown_image_is_refused() -> None:
    with pytest.raises(ProgramError, match="stands for serve in the image other"):
        PROGRAMS.command("other", ("serve",))
