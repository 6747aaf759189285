"""The options that every measurement takes, and those of where it runs."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.cluster import Cluster


def parser(description: str | None, *, cluster: bool = False) -> argparse.ArgumentParser:
    """A parser that knows where scratch data may go; with `cluster`, also which service is measured."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    found.add_argument(
        "--scratch",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where scratch data directories are made",
    )
    if cluster:
        found.add_argument(
            "--cluster",
            action="store_true",
            help="measure the services of docker-compose.yml, with S3 and a Spark cluster, instead of `headwater up`",
        )
        counts = (("apis", "APIs"), ("workers", "workers"), ("spark_workers", "Spark workers"))
        for name, what in counts:
            option = f"--{name.replace('_', '-')}"
            found.add_argument(option, type=int, default=2, help=f"{what} of the cluster")
    return found


def chosen_cluster(chosen: argparse.Namespace) -> Cluster | None:
    """The cluster to measure; None for the embedded service."""
    if not chosen.cluster:
        return None
    return Cluster(apis=chosen.apis, workers=chosen.workers, spark_workers=chosen.spark_workers)
