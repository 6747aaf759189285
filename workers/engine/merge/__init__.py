"""Merge."""
