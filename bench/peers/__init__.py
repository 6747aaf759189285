"""Other systems at the work of `bench.workload`, each in a process of its own: no service, no HTTP, no job.

They need the packages of requirements/bench.txt, and have their default settings.
"""

PEERS = ("DuckLake", "delta-rs")
