"""The embedded default: the servers a single machine needs, started and supervised as child processes."""
