"""Measurements of a real service over HTTP: `make bench`, or one by one with `python -m bench.latency` and so on."""
