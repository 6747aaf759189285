"""Slices."""
