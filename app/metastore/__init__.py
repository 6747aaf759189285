"""Metastore."""
