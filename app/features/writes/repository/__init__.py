"""Datasets that writes register, in Postgres."""
