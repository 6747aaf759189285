"""Datasets, schemas and heads in Postgres."""
