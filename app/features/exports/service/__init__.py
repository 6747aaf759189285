"""Exports in the API, and their runs in the worker."""
