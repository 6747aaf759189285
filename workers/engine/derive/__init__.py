"""Derive."""
