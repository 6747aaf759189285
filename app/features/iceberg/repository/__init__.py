"""Postgres.

table_versions   the versions of a dataset that the catalogue shows
"""
