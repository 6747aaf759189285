"""Requests for verifications, and their runs in the worker."""
