"""Parquet and Arrow files on object storage."""
