"""Positions in Postgres: of readers, and of followers that workers move."""
