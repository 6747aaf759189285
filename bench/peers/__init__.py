"""Other systems at the work of `bench.workload`, each in a process of its own: no service, no HTTP, no job.

Libraries need the packages of requirements/bench.txt, and have their default settings. Table formats on Spark need
those of requirements/bench-spark-RELEASE.txt, in an environment for each release of Spark.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Peer(msgspec.Struct, frozen=True):
    """A class that is a `Lake`, as MODULE:NAME, and the release of Spark that it needs."""

    system: str
    spark: str | None = None


PEERS: Final = {
    "DuckLake": Peer("bench.peers.ducklake:DuckLake"),
    "delta-rs": Peer("bench.peers.delta_rs:DeltaRs"),
    "Delta": Peer("bench.peers.spark.delta:Delta", "4.1"),
    "Iceberg": Peer("bench.peers.spark.iceberg:Iceberg", "4.1"),
    "Hudi CoW": Peer("bench.peers.spark.hudi:HudiCopyOnWrite", "3.5"),
    "Hudi MoR": Peer("bench.peers.spark.hudi:HudiMergeOnRead", "3.5"),
    "Paimon": Peer("bench.peers.spark.paimon:Paimon", "3.5"),
}
"""By name."""
