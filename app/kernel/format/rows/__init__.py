"""Stored rows: record keys and buckets, staging, placement in a file group, the columns of changes and meta columns."""
