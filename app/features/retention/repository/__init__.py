"""Expired offsets and versions, and which files are referenced, in Postgres."""
