"""Other systems at the work of `bench.workload`, each in a process of its own: no service, no HTTP, no job.

They need the packages of requirements/bench.txt, and are set up as they come.
"""

PEERS = ("DuckLake", "delta-rs")
