"""Savepoints and tags in Postgres."""
