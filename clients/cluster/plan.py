"""Containers as processes: each has an address, folders, and in these terms a command and an environment."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import msgspec

from clients.cluster.composition import Service

INGRESS: Final = "ingress"
_FIRST_HOST: Final = 10
# The addresses of a proxy: the names that Compose gives the containers of a service.
_ALL_OF_A_SERVICE: Final = re.compile(r"^to(?: \S+-([a-z]+)-\d+:(\d+))+$")
_EVERY_ADDRESS: Final = re.compile(r"^(?:0\.0\.0\.0$|(?=:\d+$))")


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """A container as a process of this machine. `command`: in the terms of its image. `own`: its folder.

    `folders`: those of this machine, by the path inside the container. `files`: contents by path.
    """

    name: str
    service: Service
    address: str
    own: Path
    command: tuple[str, ...]
    environment: dict[str, str]
    folders: dict[str, Path]
    files: dict[Path, str]


def plan(services: Mapping[str, Service], data: Path, network: str, listen: str) -> list[Container]:
    """The containers in the order of their start.

    `network`: the first three numbers of their addresses. `listen`: the address and port of the proxy.
    """
    places = {
        (service.name, number): f"{network}.{_FIRST_HOST + place}"
        for place, (service, number) in enumerate(
            (service, number) for service in services.values() for number in range(1, service.scale + 1)
        )
    }
    jobs = {name for name, service in services.items() if service.job}
    # The port of the proxy is that of the caller. Those of others are on the address of their container.
    published = {
        f"//localhost:{port}": f"//{places[name, 1]}:{inside}"
        for name, service in services.items()
        if name != INGRESS
        for port, inside in service.ports.items()
    }
    return [
        _container(services[name], number, address, places, jobs, published, data, listen)
        for (name, number), address in places.items()
    ]


def _container(
    service: Service,
    number: int,
    address: str,
    places: Mapping[tuple[str, int], str],
    jobs: Collection[str],
    published: Mapping[str, str],
    data: Path,
    listen: str,
) -> Container:
    container = f"{service.name}-{number}"
    own = data / "containers" / container
    folders = {path: data / "volumes" / volume for path, volume in service.volumes.items()}
    if own_folder := service.environment.get("HEADWATER_DATA_DIR"):
        folders[own_folder] = own
    inside = folders | {path: own / Path(path).name for path in service.files}
    # The longest first: a volume may be below the folder of the process.
    paths = sorted(inside.items(), key=lambda pair: -len(pair[0]))

    # A service has the address of its first container, and a job none.
    names = {other: place for (other, which), place in places.items() if which == 1 and other not in jobs}

    def translated(text: str) -> str:
        for path, here in paths:
            text = text.replace(path, str(here))
        for url, place in published.items():
            text = text.replace(url, place)
        text = _ALL_OF_A_SERVICE.sub(lambda found: _upstreams(found[1], found[2], places), text)
        text = _EVERY_ADDRESS.sub(address, text)
        for name, place in names.items():
            text = re.sub(rf"(?:(?<=//)|(?<=@)){name}(?=:\d)|^{name}$", place, text)
        return text

    environment = {key: translated(value) for key, value in service.environment.items()}
    if service.name == INGRESS:
        environment["BIND"], _, port = listen.partition(":")
        environment["LISTEN"] = f":{port}"
    if service.ours:
        environment |= {"SPARK_LOCAL_IP": address}
        if "HEADWATER_SPARK_MASTER" in environment:
            environment["HEADWATER_SPARK_DRIVER_HOST"] = address
    first, *words = service.command
    return Container(
        name=container,
        service=service,
        address=address,
        own=own,
        command=(first, *map(translated, words), *_listening(first, address)),
        environment=environment,
        folders=folders,
        files={own / Path(path).name: content for path, content in service.files.items()},
    )


def _listening(program: str, address: str) -> tuple[str, ...]:
    """Arguments that make a server, which in a container listens on all addresses, listen on its own."""
    match program:
        case "postgres":
            return ("-c", f"listen_addresses={address}", "-c", "unix_socket_directories=")
        case "valkey-server":
            return ("--bind", address, "--protected-mode", "no")
    return ()


def _upstreams(service: str, port: str, places: Mapping[tuple[str, int], str]) -> str:
    return "to " + " ".join(f"{place}:{port}" for (name, _), place in places.items() if name == service)
