"""Marking partitions as done: on request, and by a reconciler."""
