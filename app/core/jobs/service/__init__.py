"""Accepting jobs, holding their leases, running tasks, and the relay."""
