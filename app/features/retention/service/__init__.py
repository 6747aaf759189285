"""Expiring the feed and the history, archiving instants, and reaping orphaned files."""
