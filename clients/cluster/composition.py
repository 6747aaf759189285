"""What docker-compose.yml and the Dockerfile state: services with their commands, environments and volumes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

_VARIABLE: Final = re.compile(r"\$(?:\$|\{(\w+)(?::\?[^}]*|:-([^}]*))?\})")
_SECONDS: Final = re.compile(r"(\d+)s")
_STOP_SECONDS: Final = 10.0


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A service. `ours`: it runs in the image of the Dockerfile, otherwise in the one that `image` names.

    `volumes`: their names by the path inside. `files`: their contents by the path inside. `ports`: those of the
    container by the port of its machine that stands for it. `job`: it ends by itself.
    """

    name: str
    image: str
    ours: bool
    command: tuple[str, ...]
    environment: dict[str, str]
    volumes: dict[str, str]
    files: dict[str, str]
    ports: dict[str, str]
    needs: tuple[str, ...]
    scale: int
    job: bool
    stop_seconds: float


def read(compose_file: Path, dockerfile: Path, variables: Mapping[str, str]) -> dict[str, Service]:
    """The services by name, each after those that it needs.

    `variables`: what the file takes from its environment. Raises KeyError if one is missing.
    """
    stated = yaml.safe_load(compose_file.read_text(encoding="utf-8"))
    configs = {name: config["content"] for name, config in stated["configs"].items()}
    image = image_environment(dockerfile)
    jobs = {
        needed
        for service in stated["services"].values()
        for needed, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    }
    found = {
        name: _service(name, service, configs, image, variables, job=name in jobs)
        for name, service in stated["services"].items()
    }
    return _in_order(found)


def image_environment(dockerfile: Path) -> dict[str, str]:
    """The variables of the last stage of a Dockerfile, except PATH."""
    stage = dockerfile.read_text(encoding="utf-8").replace("\\\n", " ").rpartition("\nFROM ")[2]
    pairs = [
        word.partition("=")
        for line in stage.splitlines()
        if line.startswith("ENV ")
        for word in line.split()[1:]
    ]
    return {name: value for name, _, value in pairs if name != "PATH"}


def interpolated(text: str, variables: Mapping[str, str]) -> str:
    """A text with the values of its variables, and one dollar sign for two.

    Raises KeyError if one that has no default is missing.
    """

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        if name is None:
            return "$"
        return variables[name] if default is None else variables.get(name, default)

    return _VARIABLE.sub(value, text)


def adjusted(
    services: Mapping[str, Service], scales: Mapping[str, int], settings: Mapping[str, Mapping[str, str]]
) -> dict[str, Service]:
    """The services with other numbers of containers and further variables, as `--scale` and an override file do it.

    Raises ValueError if there is no such service.
    """
    if unknown := {*scales, *settings} - services.keys():
        raise ValueError(f"docker-compose.yml has no service {', '.join(sorted(unknown))}")
    return {
        name: msgspec.structs.replace(
            service,
            scale=scales.get(name, service.scale),
            environment=service.environment | dict(settings.get(name, {})),
        )
        for name, service in services.items()
    }


def _service(
    name: str,
    stated: Mapping[str, Any],
    configs: Mapping[str, str],
    image: Mapping[str, str],
    variables: Mapping[str, str],
    *,
    job: bool,
) -> Service:
    ours = "build" in stated
    environment = {
        key: interpolated(str(value), variables) for key, value in stated.get("environment", {}).items()
    }
    seconds = _SECONDS.fullmatch(stated.get("stop_grace_period", ""))
    return Service(
        name=name,
        image=stated["image"].partition(":")[0],
        ours=ours,
        command=tuple(interpolated(str(word), variables) for word in stated["command"]),
        environment={**image, **environment} if ours else environment,
        volumes={
            path: volume for volume, path in (each.split(":")[:2] for each in stated.get("volumes", []))
        },
        files={
            each["target"]: interpolated(configs[each["source"]], variables)
            for each in stated.get("configs", [])
        },
        ports=dict(each.split(":") for each in stated.get("ports", [])),
        needs=tuple(stated.get("depends_on", {})),
        scale=stated.get("scale", 1),
        job=job,
        stop_seconds=float(seconds[1]) if seconds else _STOP_SECONDS,
    )


def _in_order(services: Mapping[str, Service]) -> dict[str, Service]:
    ordered: dict[str, Service] = {}
    while len(ordered) < len(services):
        free = [
            each for each in services.values() if each.name not in ordered and set(each.needs) <= set(ordered)
        ]
        if not free:
            raise ValueError("services of docker-compose.yml need each other")
        ordered |= {each.name: each for each in free}
    return ordered
