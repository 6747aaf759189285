"""Exports, runs and files in Postgres."""
