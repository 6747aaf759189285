"""Marks and events of partitions, and partitions whose files changed, in Postgres."""
