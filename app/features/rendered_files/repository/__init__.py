"""Postgres: renderings and their objects."""
