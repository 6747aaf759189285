"""Postgres: the secrets of the deployment, and the data files of tables."""
