"""Accepting a write in the API; reading, planning and running a group of writes in the worker."""
