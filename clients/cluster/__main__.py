"""`python -m clients.cluster --data DIR --port PORT`: see `make cluster`."""

import argparse
import os
import sys
from pathlib import Path

from app.runtime.account import AccountError
from app.runtime.data_directory import DataDirectoryError
from app.runtime.java import JavaError
from app.runtime.postgres import PostgresError
from app.runtime.supervisor import StartError
from app.runtime.valkey import ValkeyError
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
    arguments = parser.parse_args()
    path = os.pathsep.join(filter(None, [str(arguments.programs or ""), os.environ.get("PATH", "")]))
    try:
        run(arguments.data, arguments.port, Programs.found(path))
    except FAILURES as error:
        sys.exit(f"headwater: {error}")


if __name__ == "__main__":
    main()
