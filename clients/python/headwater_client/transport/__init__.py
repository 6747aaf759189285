"""Requests with retries, their bodies and paths, and the pages of responses."""
