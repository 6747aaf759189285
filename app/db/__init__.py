"""Postgres: the timeline, the jobs and the catalogue."""
