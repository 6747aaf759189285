"""`python -m clients.cluster --data DIR --port PORT`: see `make cluster`."""

import argparse
import os
import sys
from collections import defaultdict
from pathlib import Path

from app.infra.runtime.account import AccountError
from app.infra.runtime.data_directory import DataDirectoryError
from app.infra.runtime.java import JavaError
from app.infra.runtime.postgres import PostgresError
from app.infra.runtime.supervisor import StartError
from app.infra.runtime.valkey import ValkeyError
from clients.cluster.programs import ProgramError, Programs
from clients.cluster.start import ClusterError, run

FAILURES = (
    AccountError,
    ClusterError,
    DataDirectoryError,
    JavaError,
    PostgresError,
    ProgramError,
    StartError,
    ValkeyError,
)


def main() -> None:
    """Run the cluster until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="make cluster")
    parser.add_argument("--data", type=Path, default=Path(".headwater"))
    parser.add_argument("--port", type=int, default=8080, help="the port of the proxy on 127.0.0.1")
    parser.add_argument("--programs", type=Path, help="a folder with versitygw and caddy, before PATH")
    parser.add_argument(
        "--scale",
        type=_scale,
        nargs="+",
        default=[],
        metavar="SERVICE=N",
        help="how many containers of a service",
    )
    parser.add_argument(
        "--set",
        type=_setting,
        nargs="+",
        default=[],
        metavar="SERVICE.NAME=VALUE",
        help="a variable of a service",
    )
    arguments = parser.parse_args()
    settings: dict[str, dict[str, str]] = defaultdict(dict)
    for service, name, value in arguments.set:
        settings[service][name] = value
    path = os.pathsep.join(filter(None, [str(arguments.programs or ""), os.environ.get("PATH", "")]))
    try:
        programs = Programs.found(path)
        run(arguments.data, arguments.port, programs, scales=dict(arguments.scale), settings=settings)
    except FAILURES as error:
        sys.exit(f"headwater: {error}")


def _scale(text: str) -> tuple[str, int]:
    service, separator, number = text.partition("=")
    if not separator or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"expected SERVICE=N, not {text}")
    return service, int(number)


def _setting(text: str) -> tuple[str, str, str]:
    name, separator, value = text.partition("=")
    service, dot, variable = name.partition(".")
    if not separator or not dot or not variable:
        raise argparse.ArgumentTypeError(f"expected SERVICE.NAME=VALUE, not {text}")
    return service, variable, value


if __name__ == "__main__":
    main()
